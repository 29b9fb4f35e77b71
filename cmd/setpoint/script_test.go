// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/setpoint-io/setpoint/internal/scripttest"
)

const (
	// deadline is how long a script waits for what must come.
	deadline = 2 * time.Minute

	// scriptLimit is how long a script may take, with its clusters. The first hour compiles a program, from cold caches
	// beside a whole run of tests: that alone took more than three minutes.
	scriptLimit = 20 * time.Minute

	// atATime is how many scripts run at a time.
	atATime = 4
)

// The scripts in testdata read like a manual: each shows one thing that a user
// does and what is seen.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"setpoint": main, pluginName: main, completionName: main, "eventually": scripttest.Eventually})
}

// TestScripts runs the scripts that need no cluster.
func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, "testdata/plain")
}

// TestClusterScripts runs those that need one. Most borrow it, see [clusters.borrow]. A script that tests "setpoint up" itself,
// stops or kills a part of the cluster, or compares what is in the whole cluster starts its own.
func TestClusterScripts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts control planes, which -short leaves out")
	}
	p := scripts(t, "testdata/cluster")
	p.Cmds["borrow"] = lendClusters(t).borrow
	scripttest.Run(t, atATime, p)
}

// goSettings are what go commands in scripts have of the machine's: their caches are outside of
// the home directory of a script, and hold what "make build" has compiled.
var goSettings = []string{"GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOSUMDB", "GOTOOLCHAIN"}

func setGo(t *testing.T, e *testscript.Env) {
	t.Helper()
	values, err := exec.CommandContext(t.Context(), "go", append([]string{"env"}, goSettings...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range strings.Split(strings.TrimSuffix(string(values), "\n"), "\n") {
		e.Setenv(goSettings[i], value)
	}
	e.Setenv("CGO_ENABLED", "0") // as "make build" has it
	e.Setenv("GOWORK", "off")
}

// TestTheFirstHour is what a new user does in the first hour. What the terminals show is
// written to $FIRST_HOUR, a folder, if there is one.
func TestTheFirstHour(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane, which -short leaves out")
	}
	runScripts(t, "testdata/firsthour", func(e *testscript.Env) error {
		folder := os.Getenv("FIRST_HOUR")
		if folder == "" {
			folder = filepath.Join(e.WorkDir, "transcript")
		}
		e.Setenv("HOUR", folder)
		return os.MkdirAll(folder, 0o750) //nolint:gosec // the folder is named by the caller of the test
	})
}

func runScripts(t *testing.T, dir string, more ...func(*testscript.Env) error) {
	t.Helper()
	scripttest.Run(t, atATime, scripts(t, dir, more...))
}

// scripts returns the scripts of a folder, to be run.
func scripts(t *testing.T, dir string, more ...func(*testscript.Env) error) testscript.Params {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	return testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			scripttest.Guard(e, scriptLimit)
			e.Setenv("SETPOINT_CONTROLPLANE_BIN", filepath.Join(bin, "setpoint-controlplane"))
			// Behind the test's own setpoint; kubectl is there.
			e.Setenv("PATH", e.Getenv("PATH")+string(os.PathListSeparator)+bin)
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("KUBECONFIG", "")
			// A program with a race detector waits for a second at its end otherwise.
			e.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
			e.Setenv("FREE", freePort(t))
			e.Setenv("CHECKOUT", filepath.Dir(bin))
			setGo(t, e)
			if err := scripttest.Documents(e, t.Name()); err != nil {
				return err
			}
			for _, setup := range more {
				if err := setup(e); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: commands(),
	}
}

// commands are those of the scripts.
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := scripttest.DocumentCommands()
	maps.Copy(all, map[string]func(*testscript.TestScript, bool, []string){
		"waitfile": waitFile,
		"waittext": waitText,
		"mode":     mode,
		"signal":   sendSignal,
		"gone":     gone,
		"isjson":   isJSON,

		"certrequest": certRequest,
		"explained":   explained,
	})
	return all
}

// freePort is a port that nothing listens on: the kernel gave it to us, and we
// gave it back.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// until asks until something is true, or fails the script.
func until(ts *testscript.TestScript, what string, f func() bool) {
	if !scripttest.Within(deadline, 10*time.Millisecond, f) {
		ts.Fatalf("waited in vain for %s", what)
	}
}

// waitfile FILE waits until a file is there.
func waitFile(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, args[0], func() bool { _, err := os.Stat(ts.MkAbs(args[0])); return err == nil })
}

// waittext FILE TEXT waits until a file has a text in it.
func waitText(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, fmt.Sprintf("%q in %s", args[1], args[0]), func() bool {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && strings.Contains(string(text), args[1])
	})
}

// mode FILE MODE checks a file's permissions.
func mode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[1] {
		ts.Fatalf("%s has mode %s, want %s", args[0], got, args[1])
	}
}

// signal FILE NAME sends a signal to the process whose id is in a file.
func sendSignal(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}
	ts.Check(syscall.Kill(pid(ts, args[0]), signals[args[1]]))
}

// gone FILE waits until the process whose id is in a file has ended.
func gone(ts *testscript.TestScript, _ bool, args []string) {
	id := pid(ts, args[0])
	until(ts, "the end of the process of "+args[0], func() bool { return syscall.Kill(id, 0) != nil })
}

func pid(ts *testscript.TestScript, file string) (id int) {
	text, err := os.ReadFile(ts.MkAbs(file))
	ts.Check(err)
	_, err = fmt.Sscan(string(text), &id)
	ts.Check(err)
	return id
}

// isjson FILE checks that each line of a file is a JSON object.
func isJSON(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	d := json.NewDecoder(strings.NewReader(text))
	n := 0
	for d.More() {
		var o map[string]any
		ts.Check(d.Decode(&o))
		n++
	}
	if n == 0 {
		ts.Fatalf("%s is empty", args[0])
	}
}
