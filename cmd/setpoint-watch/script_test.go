// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/scripttest"
)

const (
	// deadline is how long a script waits for what must come.
	deadline = time.Minute

	// scriptLimit is how long a script may take.
	scriptLimit = 4 * time.Minute
)

// raceOptions is the variable with the options of Go's race detector.
const raceOptions = "GORACE"

// TestScripts runs the scripts in testdata/script. They read like a manual: each shows one
// thing that a user does and what is seen. Beside what testscript has, there are
//
//	start [-as NAME] [-now] CMD…      runs a watch in the background, and waits until it watches
//	await FILE REGEXP                 waits until a line of a file is like this
//	end [-as NAME] [-SIGNAL] [STATUS] ends it, by SIGTERM if nothing else is said
//	ended [-as NAME] [STATUS]         waits until it has ended by itself
//	isjson FILE                       each line is a JSON object
//	receive NAME                      is a webhook: its URL is in NAME.url, and what it is sent in NAME
//	block, lines, shown, …            use the blocks of documents that name the script (package scripttest)
//
// What a watch prints is in the file told, and what it says on standard error in said, or in
// NAME.told and NAME.said. With -now it is not waited for.
//
// All scripts share a cluster: "setpoint up", with its nodes and controllers. Each has a
// namespace of its own, $NS, which is that of its kubeconfig too.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster, which -short leaves out")
	}
	bin := programs(t)
	kubeconfig := clusterUp(t, filepath.Join(bin, "setpoint"))
	scripttest.Run(t, atATime, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			scripttest.Guard(e, scriptLimit)
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv(asProgram, "1")
			// A program with a race detector waits for a second at its end otherwise.
			e.Setenv(raceOptions, os.Getenv(raceOptions)+" atexit_sleep_ms=0")
			w := &watches{byName: map[string]*watchProcess{}}
			e.Values[watchesKey{}] = w
			e.Defer(w.kill)
			return errors.Join((&environment{e}).setup(kubeconfig), scripttest.Documents(e, t.Name()))
		},
		Cmds: commands(),
	})
}

// commands are those of the scripts.
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := scripttest.DocumentCommands()
	maps.Copy(all, map[string]func(*testscript.TestScript, bool, []string){
		"start": start, "await": await, "end": end, "ended": ended, "isjson": isJSON, "receive": receive,
	})
	return all
}

// atATime is how many scripts run at a time.
const atATime = 6

// programs makes a folder with the programs: setpoint as it was built, beside it this test
// as setpoint-watch and as eventually, and kubectl.
func programs(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{"setpoint-watch": self, "eventually": self}
	for _, name := range []string{"setpoint", "kubectl", "setpoint-controlplane"} {
		if paths[name], err = controlplanetest.Binary(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, path := range paths {
		to := filepath.Join(bin, name)
		// No symbolic link: setpoint looks for the others where it is itself.
		if os.Link(path, to) == nil {
			continue
		}
		if err := copyProgram(path, to); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700) //nolint:gosec // it is to be run
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// clusterUp starts a cluster for this test, and returns its kubeconfig. The cluster is one
// for a command, cat, that ends when this process does, however that is.
func clusterUp(t *testing.T, setpoint string) string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	up := exec.Command(setpoint, "up", "--nodes", "2", "--kubeconfig", kubeconfig, "--", "cat")
	var said strings.Builder
	up.Stderr = &said
	stdin, err := up.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	t.Cleanup(func() {
		_ = stdin.Close()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the cluster ended with %v and said:\n%s", err, said.String())
			}
		case <-time.After(deadline):
			_ = up.Process.Kill()
			t.Errorf("the cluster did not stop within %s", deadline)
		}
	})
	controlplanetest.AwaitFile(t, "there is a cluster", kubeconfig)
	// Whether a line has a cause depends on the time. The test of causes has a cluster of its own.
	kubectl, err := controlplanetest.Binary("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the manager has announced itself, and is not found any more", func() bool {
		return exec.CommandContext(t.Context(), kubectl, "--kubeconfig", kubeconfig, "delete", "lease", "setpoint-manager", "-n", "kube-system").Run() == nil
	})
	return kubeconfig
}

// environment is what a script runs in.
type environment struct{ *testscript.Env }

// setup gives a script a namespace with all that a new one gets, and a kubeconfig for it.
func (e *environment) setup(kubeconfig string) error {
	namespace := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
	file := filepath.Join(e.WorkDir, "kubeconfig")
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o600); err != nil { //nolint:gosec // the path is the test's
		return err
	}
	e.Setenv("NS", namespace)
	e.Setenv("KUBECONFIG", file)
	for _, args := range [][]string{
		{"create", "namespace", namespace},
		{"config", "set-context", "--current", "--namespace", namespace},
		{"wait", "--for=create", "configmap/kube-root-ca.crt", "serviceaccount/default", "--timeout=60s"},
	} {
		cmd := exec.Command("kubectl", args...)
		cmd.Env = e.Vars
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// watchesKey is where a script has its watches.
type watchesKey struct{}

// watches are those that a script has started.
type watches struct{ byName map[string]*watchProcess }

type watchProcess struct {
	cmd        *exec.Cmd
	told, said string // the files
	ended      chan struct{}
}

func (w *watches) kill() {
	for _, p := range w.byName {
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// named takes "-as NAME" and flags from the front of arguments.
func named(args []string) (name string, flags, rest []string) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "-as" && len(args) > 1 {
			name, args = args[1], args[2:]
			continue
		}
		flags, args = append(flags, strings.TrimPrefix(args[0], "-")), args[1:]
	}
	return name, flags, args
}

func start(ts *testscript.TestScript, _ bool, args []string) {
	name, flags, args := named(args)
	all := ts.Value(watchesKey{}).(*watches)
	if all.byName[name] != nil {
		ts.Fatalf("%q runs already", name)
	}
	prefix := ""
	if name != "" {
		prefix = name + "."
	}
	p := &watchProcess{told: ts.MkAbs(prefix + "told"), said: ts.MkAbs(prefix + "said"), ended: make(chan struct{})}
	program, err := exec.LookPath(filepath.Join(strings.Split(ts.Getenv("PATH"), string(os.PathListSeparator))[0], args[0]))
	ts.Check(err)
	// It says when it watches if it is asked to say more.
	p.cmd = exec.Command(program, append(slices.Clone(args[1:]), "-v")...)
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Env = os.Environ()
	for _, variable := range []string{"PATH", "HOME", "KUBECONFIG", asProgram, raceOptions} {
		p.cmd.Env = append(p.cmd.Env, variable+"="+ts.Getenv(variable))
	}
	told, err := os.Create(p.told)
	ts.Check(err)
	defer told.Close()
	said, err := os.Create(p.said)
	ts.Check(err)
	defer said.Close()
	p.cmd.Stdout, p.cmd.Stderr = told, said
	ts.Check(p.cmd.Start())
	all.byName[name] = p
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	if !slices.Contains(flags, "now") {
		until(ts, "the watch to begin", p.said, func(text string) bool { return strings.Contains(text, `"msg":"watching: what was there`) })
	}
}

// until waits until a file is as it should be, or fails the script and shows it.
func until(ts *testscript.TestScript, what, file string, is func(text string) bool) {
	var text []byte
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		text, _ = os.ReadFile(file)
		if is(string(text)) {
			return
		}
	}
	ts.Fatalf("waited in vain for %s; %s has\n%s", what, filepath.Base(file), text)
}

func await(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: await FILE REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	until(ts, strconv.Quote(args[1]), ts.MkAbs(args[0]), re.MatchString)
}

func end(ts *testscript.TestScript, _ bool, args []string) {
	name, flags, args := named(args)
	sent := syscall.SIGTERM
	for _, flag := range flags {
		sent = map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "HUP": syscall.SIGHUP}[flag]
	}
	all := ts.Value(watchesKey{}).(*watches)
	if all.byName[name] == nil {
		ts.Fatalf("no watch runs that is called %q", name)
	}
	ts.Check(all.byName[name].cmd.Process.Signal(sent))
	all.wait(ts, name, sent == syscall.SIGKILL, args)
}

func ended(ts *testscript.TestScript, _ bool, args []string) {
	name, _, args := named(args)
	ts.Value(watchesKey{}).(*watches).wait(ts, name, false, args)
}

// wait waits for the end of a watch, and checks its status.
func (w *watches) wait(ts *testscript.TestScript, name string, killed bool, args []string) {
	p := w.byName[name]
	select {
	case <-p.ended:
		delete(w.byName, name)
	case <-time.After(deadline):
		ts.Fatalf("the watch did not end") // it is killed with the script
	}
	want := "0"
	if len(args) > 0 {
		want = args[0]
	}
	if got := p.cmd.ProcessState; !killed && strconv.Itoa(got.ExitCode()) != want {
		said, _ := os.ReadFile(p.said)
		ts.Fatalf("the watch ended with %s, want %s, and said\n%s", got, want, said)
	}
}

func isJSON(ts *testscript.TestScript, _ bool, args []string) {
	lines := strings.SplitAfter(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n")
	for _, line := range lines {
		var o map[string]any
		ts.Check(json.Unmarshal([]byte(line), &o))
	}
}

// receive starts a receiver of webhooks for as long as the script runs. What it is sent is in
// the file NAME, a line for each request.
func receive(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: receive NAME")
	}
	taken, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil { // in one write: requests may come at the same time
			_, err = taken.Write(append(body, '\n'))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	ts.Defer(func() {
		server.Close()
		_ = taken.Close()
	})
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".url"), []byte(server.URL), 0o600))
}
