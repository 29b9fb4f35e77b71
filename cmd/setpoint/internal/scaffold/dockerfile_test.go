// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// instructions returns the lines of a Dockerfile that begin with name, without the name.
func instructions(dockerfile, name string) []string {
	var found []string
	for line := range strings.Lines(dockerfile) {
		if arguments, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			found = append(found, arguments)
		}
	}
	return found
}

// The command of the Dockerfile runs without Docker, as it is written but for -trimpath, in the
// files that Docker would copy.
func TestTheDockerfileBuildsAStaticProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module, which -short leaves out")
	}
	n, dir := written(t, names{Kind: "Website", Version: "v1"})
	text, err := os.ReadFile(filepath.Join(dir, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	dockerfile := string(text)
	leaveOutIgnored(t, dir)

	pinned := regexp.MustCompile(`^(scratch|[a-z]+:[0-9]+\.[0-9]+\.[0-9]+)( AS build)?$`)
	for _, image := range instructions(dockerfile, "FROM") {
		if !pinned.MatchString(image) {
			t.Errorf("FROM %s: want a full version, so that a build can be repeated", image)
		}
	}

	commands := instructions(dockerfile, "RUN")
	copies := instructions(dockerfile, "COPY")
	if len(commands) != 1 || len(copies) != 2 || copies[0] != ". ." {
		t.Fatalf("the Dockerfile has other steps than this test carries out:\n%s", dockerfile)
	}
	t.Setenv("GOOS", "linux") // as in the image
	// With -trimpath every package would be compiled once more. Nothing that follows depends on it.
	command := strings.Replace(commands[0], "-trimpath ", "", 1)
	if command == commands[0] {
		t.Errorf("RUN %s: without -trimpath the program holds the paths of the machine that built it", command)
	}
	runIn(t, dir, "sh", "-c", command)

	program := "bin/" + n.Name // in the WORKDIR of the stage, for which dir stands
	if want := "--from=build " + instructions(dockerfile, "WORKDIR")[0] + "/" + program + " /" + n.Name; copies[1] != want {
		t.Errorf("COPY %s: want %s, which the stage before has built", copies[1], want)
	}
	if entrypoint := instructions(dockerfile, "ENTRYPOINT"); len(entrypoint) != 1 || entrypoint[0] != `["/`+n.Name+`"]` {
		t.Errorf("the entry point is %q, want the program", entrypoint)
	}
	isStatic(t, filepath.Join(dir, program))
}

// leaveOutIgnored removes what Docker does not copy.
func leaveOutIgnored(t *testing.T, dir string) {
	t.Helper()
	ignored, err := os.ReadFile(filepath.Join(dir, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(ignored)) {
		if err := os.RemoveAll(filepath.Join(dir, strings.TrimSpace(line))); err != nil {
			t.Fatal(err)
		}
	}
}

// isStatic checks that a program needs no other file of its image: neither a dynamic linker nor a
// library.
func isStatic(t *testing.T, program string) {
	t.Helper()
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	if err != nil || len(libraries) > 0 {
		t.Errorf("%s needs the libraries %q (%v)", program, libraries, err)
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("%s needs a dynamic linker", program)
		}
	}
}
