// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scripttest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// process is a process that was found running.
type process struct {
	id      int
	command string
}

func (p process) String() string { return fmt.Sprintf("%d: %s", p.id, p.command) }

// processes returns the running processes that were started with a variable, such as
// "WORK=/tmp/a". Source of the format: proc(5).
func processes(variable string) []process {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	var found []process
	for _, file := range files {
		// A process that has just ended, and one of another user, cannot be read.
		environ, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+variable+"\x00")) {
			continue
		}
		dir := filepath.Dir(file)
		id, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		found = append(found, process{id, string(bytes.TrimSpace(bytes.ReplaceAll(command, []byte{0}, []byte(" "))))})
	}
	return found
}
