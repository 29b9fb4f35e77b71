// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pretend writes a program that stands for the control plane: a shell script.
func pretend(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), Binary)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	return path
}

const isReady = `echo '{"state":"ready","kubeconfig":"/k","servers":["https://a","https://b"],"dataDir":"/d","caFile":"/ca","caKeyFile":"/ca.key","serviceAccountKeyFile":"/sa.key","elapsed":"2.0s"}'
`

func TestStartFollowsTheChildUntilItIsReady(t *testing.T) {
	var steps []Progress
	p, err := Start(t.Context(), Options{
		Path: pretend(t, `
echo '{"state":"starting","component":"etcd","elapsed":"0.1s"}'
echo '{"state":"ready","component":"etcd","elapsed":"0.3s","new":"field"}'
echo '{"state":"dancing","component":"etcd"}'
`+isReady+`cat; echo '{"state":"stopped"}'`),
		Progress: func(p Progress) { steps = append(steps, p) },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Endpoints{
		Kubeconfig: "/k", Servers: []string{"https://a", "https://b"}, DataDir: "/d",
		CAFile: "/ca", CAKeyFile: "/ca.key", ServiceAccountKeyFile: "/sa.key",
	}
	if !reflect.DeepEqual(p.Endpoints(), want) {
		t.Errorf("reached at %+v, want %+v", p.Endpoints(), want)
	}
	if want := []Progress{{"etcd", false, 100 * time.Millisecond}, {"etcd", true, 300 * time.Millisecond}}; !reflect.DeepEqual(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	if err := p.Err(); err != nil {
		t.Errorf("it runs, and its end is %v", err)
	}
	// The end of its standard input is what stops it.
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stopping twice: %v", err)
	}
}

func TestStartSaysWhyTheChildCouldNot(t *testing.T) {
	tests := []struct {
		name, script string
		want         []string
	}{
		{"it reports a failure", `echo noise >&2; echo '{"state":"failed","error":"port 6443 is taken"}'; exit 1`, []string{"starting the control plane: port 6443 is taken"}},
		{"it dies and says why", `echo "fatal: no space" >&2; exit 3`, []string{"exit status 3", "fatal: no space"}},
		{"it is killed", `kill -9 $$`, []string{"signal: killed"}},
		{"it ends in silence", `exit 0`, []string{"ended by itself"}},
		{"it speaks otherwise", `echo hello`, []string{`"hello"`, "one build"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Start(t.Context(), Options{Path: pretend(t, test.script)})
			if err == nil {
				t.Fatal("it started")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
	t.Run("it is not there", func(t *testing.T) {
		_, err := Start(t.Context(), Options{Path: filepath.Join(t.TempDir(), Binary)})
		if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "make build") {
			t.Error(err)
		}
	})
}

// A process outside of the group keeps the output open, so the end cannot be seen.
func TestAKillThatSeesNoEndReturnsAnErrorWithTheProcess(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid, which starts a process outside of the group")
	}
	pid := filepath.Join(t.TempDir(), "pid")
	p, err := Start(t.Context(), Options{Path: pretend(t, `setsid sh -c 'echo $$ >'`+pid+`'; exec sleep 600' &
while ! [ -s `+pid+` ]; do sleep 0.01; done
`+isReady+`
cat`)})
	if err != nil {
		t.Fatal(err)
	}
	p.grace = 10 * time.Millisecond
	if err := p.Kill(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d has not ended", p.Pid())) {
		t.Errorf("killing it: %v", err)
	}
	other, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(other)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(number, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.grace = killGrace
	if err := p.Kill(); err != nil {
		t.Errorf("killing it with nothing left: %v", err)
	}
}

func TestStartThatIsGivenUpLeavesNothingRunning(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pid := filepath.Join(t.TempDir(), "pid")
	_, err := Start(ctx, Options{
		Path: pretend(t, `echo $$ >`+pid+`
echo '{"state":"starting","component":"etcd","elapsed":"0.1s"}'
cat`),
		Progress: func(Progress) { cancel() },
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if syscall.Kill(readPid(t, pid), 0) == nil {
		t.Error("the child still runs")
	}
}

func TestKillTakesTheWholeGroupAndIsNoError(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	p, err := Start(t.Context(), Options{Path: pretend(t, `
sleep 600 </dev/null >/dev/null 2>&1 &
echo $! >`+pid+`
`+isReady+`wait`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if err := p.Err(); err != nil {
		t.Errorf("it was killed by us, and its end is %v", err)
	}
	// The process that inherits an orphan takes a moment to reap it.
	for deadline := time.Now().Add(10 * time.Second); syscall.Kill(readPid(t, pid), 0) == nil && !isZombie(readPid(t, pid)); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the child of the child still runs")
		}
	}
}

func TestADeathIsNoticedWithItsLastWords(t *testing.T) {
	p, err := Start(t.Context(), Options{Path: pretend(t, isReady+`echo "etcd: disk gone" >&2; kill -ABRT $$`)})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "etcd: disk gone") || !strings.Contains(err.Error(), "aborted") {
		t.Errorf("its end is %v", err)
	}
}

func TestTheTailIsWholeLinesOfTheLastThatWasWritten(t *testing.T) {
	var passed strings.Builder
	tail := &tail{next: &passed}
	var all strings.Builder
	for i := range 1000 {
		line := strings.Repeat("x", i%90) + "\n"
		all.WriteString(line)
		if n, err := tail.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	if passed.String() != all.String() {
		t.Error("not everything was passed on")
	}
	last := tail.text()
	if len(last) > maxTail || len(last) < maxTail/2 {
		t.Errorf("%d bytes are remembered", len(last))
	}
	if !strings.HasSuffix(all.String(), "\n"+last+"\n") {
		t.Errorf("what is remembered does not begin with a whole line: %.80q", last)
	}
}

func readPid(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// isZombie reports whether a process has ended and only its entry is left, where
// that can be seen.
func isZombie(pid int) bool {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && strings.Contains(string(status), ") Z ")
}
