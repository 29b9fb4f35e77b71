// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package documenttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A fragment of code in a document is compiled in a function that declares what the fragment
// uses: testdata/fragments/DOCUMENT.BLOCK has the file around it.
func TestFragmentsCompile(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for _, b := range Blocks(t) {
		name := strings.TrimSuffix(filepath.Base(b.File), ".md") + "." + b.Name
		around, err := os.ReadFile(filepath.Join("testdata", "fragments", name))
		if err != nil {
			t.Errorf("%s: %v", b, err)
			continue
		}
		file := filepath.Join(dir, strings.ReplaceAll(name, ".", "_")+".go")
		text := strings.Replace(string(around), "FRAGMENT\n", "//line "+b.String()+"\n"+b.Text, 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil { //nolint:gosec // in a folder of the test
			t.Fatal(err)
		}
		files = append(files, file)
	}
	build := exec.CommandContext(t.Context(), "go", append([]string{"build", "-o", os.DevNull}, files...)...)
	build.Dir = root
	build.Env = append(build.Environ(), "GOWORK=off", "CGO_ENABLED=0") // as make build compiles what it needs
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("the code of the documents does not compile: %v\n%s", err, out)
	}
}
