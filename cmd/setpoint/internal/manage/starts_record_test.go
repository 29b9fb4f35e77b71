// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "start kube-controller-manager with every command line, and record which it accepts")

// recordFile has a line for each command line: whether kube-controller-manager starts with
// it. That depends on the command line and the version alone, and each of a thousand starts
// costs six times as much as one of setpoint. So a run of the tests starts a sample, and
// reads the others in the record.
const recordFile = "testdata/kube-controller-manager-starts.txt"

// sampled is how many command lines kube-controller-manager starts with in each run.
const sampled = 60

// record is what kube-controller-manager of one version does with command lines.
type record struct {
	version string
	accepts map[string]bool
}

const (
	recordHead = "# Made by go test -run KubeControllerManagerStarts -update, with "
	accepts    = "accepts "
	refuses    = "refuses "
)

// readRecord returns the record. It fails the test if the record is one of another version
// than program's.
func readRecord(t *testing.T, program string) record {
	t.Helper()
	text, err := os.ReadFile(recordFile)
	if err != nil {
		t.Fatal(err)
	}
	r := record{accepts: map[string]bool{}}
	for text := range strings.Lines(string(text)) {
		text = strings.TrimSuffix(text, "\n")
		switch {
		case strings.HasPrefix(text, recordHead):
			r.version = strings.TrimPrefix(text, recordHead)
		case strings.HasPrefix(text, accepts):
			r.accepts[strings.TrimPrefix(text, accepts)] = true
		case strings.HasPrefix(text, refuses):
			r.accepts[strings.TrimPrefix(text, refuses)] = false
		default:
			t.Fatalf("%s: cannot read %q", recordFile, text)
		}
	}
	if is := versionOf(t, program); r.version != is {
		t.Fatalf("%s is of %s, and %s is %s: run this test with -update", recordFile, r.version, program, is)
	}
	return r
}

func versionOf(t *testing.T, program string) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), program, "--version").Output()
	if err != nil {
		t.Fatalf("%s --version: %v", program, err)
	}
	return strings.TrimSpace(string(text))
}

// write records what the program did with all lines.
func (r record) write(t *testing.T, lines []string) {
	t.Helper()
	text := recordHead + r.version + "\n"
	for _, line := range lines {
		verdict := refuses
		if r.accepts[line] {
			verdict = accepts
		}
		text += verdict + line + "\n"
	}
	if err := os.WriteFile(recordFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sample returns the lines to start kube-controller-manager with: all of them with -update,
// and some by chance otherwise.
func sample(t *testing.T, lines []string) map[string]bool {
	t.Helper()
	chosen := map[string]bool{}
	if *update {
		for _, line := range lines {
			chosen[line] = true
		}
		return chosen
	}
	seed := rand.Uint64()
	t.Logf("the sample has seed %d", seed)
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(lines))[:min(sampled, len(lines))] {
		chosen[lines[i]] = true
	}
	return chosen
}

// check compares the record with the starts of the sample and with the lines there are.
func (r record) check(t *testing.T, lines []string, started map[string]result) {
	t.Helper()
	for _, line := range lines {
		recorded, known := r.accepts[line]
		switch is, ran := started[line]; {
		case !known:
			t.Errorf("%s has no line %q: run this test with -update", recordFile, line)
		case ran && is.accepted != recorded:
			t.Errorf("%s\n  is accepted: %t, and recorded: %t. It says\n  %s", line, is.accepted, recorded, is.said)
		}
	}
	if extra := len(r.accepts) - len(lines); extra > 0 {
		t.Errorf("%s has %d lines that are tested no more: run this test with -update", recordFile, extra)
	}
}

func TestTheSampleIsOfDifferentLines(t *testing.T) {
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprint(i))
	}
	a, b := sample(t, lines), sample(t, lines)
	if len(a) != sampled || len(b) != sampled {
		t.Errorf("%d and %d lines, want %d", len(a), len(b), sampled)
	}
	if same := slices.DeleteFunc(lines, func(line string) bool { return !a[line] || !b[line] }); len(same) == sampled {
		t.Error("two samples are the same")
	}
}
