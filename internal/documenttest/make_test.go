// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package documenttest

import (
	"os/exec"
	"strings"
	"testing"
)

// root is the folder of the repository.
const root = "../.."

// Make says what it would do for each command of the documents: it fails if there is no such target.
// The lines that a build prints are the titles of its steps.
func TestTheTargetsOfMakeAreThere(t *testing.T) {
	program, err := exec.LookPath("make")
	if err != nil {
		t.Skip("there is no make")
	}
	for _, b := range Blocks(t) {
		would, commands := "", 0
		for _, command := range b.Commands() {
			words, ok := strings.CutPrefix(strings.TrimPrefix(command, "$ "), "make ")
			if !ok {
				continue
			}
			commands++
			dry := exec.CommandContext(t.Context(), program, append([]string{"-n"}, strings.Fields(words)...)...)
			dry.Dir = root
			out, err := dry.CombinedOutput()
			if err != nil {
				t.Errorf("%s: make %s: %v\n%s", b, words, err, out)
			}
			would += string(out)
		}
		if commands == 0 {
			t.Errorf("%s: no line is a make command", b)
		}
		shown, steps := strings.Count(b.Text, "\nbuilding "), strings.Count(would, " 'building ")
		for line := range strings.Lines(b.Text) {
			title, _, isStep := strings.Cut(line, ": done in ")
			if isStep && !strings.Contains(would, "'"+title+"'") {
				t.Errorf("%s: make prints no line %q", b, title)
			}
		}
		if shown > 0 && shown != steps {
			t.Errorf("%s: the block shows %d steps of the build, make has %d", b, shown, steps)
		}
	}
}
