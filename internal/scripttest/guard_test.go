// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scripttest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// judged is a testscript.T that notes whether a script failed, and why.
type judged struct {
	*testing.T
	running sync.WaitGroup

	mu     sync.Mutex
	failed bool
	said   strings.Builder
}

func (j *judged) Run(_ string, script func(testscript.T)) {
	j.running.Go(func() { script(j) })
}

func (j *judged) Parallel()     {}
func (j *judged) Verbose() bool { return false }

func (j *judged) Log(args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintln(&j.said, args...)
}

func (j *judged) Fatal(args ...any) {
	j.Log(args...)
	j.FailNow()
}

func (j *judged) FailNow() {
	j.mu.Lock()
	j.failed = true
	j.mu.Unlock()
	runtime.Goexit()
}

// runScript runs one script under guard, and returns why it failed; "" if it did not.
func runScript(t *testing.T, script string, limit time.Duration) string {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("needs /proc")
	}
	file := filepath.Join(t.TempDir(), "script.txtar")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	j := &judged{T: t}
	testscript.RunT(j, testscript.Params{
		Files: []string{file},
		Setup: func(e *testscript.Env) error { Guard(e, limit); return nil },
	})
	j.running.Wait()
	if !j.failed {
		return ""
	}
	return j.said.String()
}

// A process that holds the output of a command keeps testscript waiting for it, although
// the command has ended.
func TestAProcessThatHoldsTheOutputOfItsScriptIsKilledAndNamed(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a command":                   "exec sh -c 'sleep 4321 & exit 1'\n",
		"a command in the background": "exec sh -c 'sleep 4321 & >started' &\nexec sh -c 'until test -e started; do sleep 0.01; done'\n",
		"a command that waits":        "exec sh -c 'trap : QUIT; sleep 4321'\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runScript(t, script, 200*time.Millisecond)
			for _, want := range []string{"did not end within 200ms", "sleep 4321"} {
				if !strings.Contains(got, want) {
					t.Errorf("it failed with %q, which does not contain %q", got, want)
				}
			}
		})
	}
}

func TestAProcessThatOutlivesItsScriptIsAFailure(t *testing.T) {
	t.Parallel()
	got := runScript(t, "exec sh -c 'sleep 4321 >out 2>&1 &'\n", time.Minute)
	for _, want := range []string{"the script has ended", "sleep 4321"} {
		if !strings.Contains(got, want) {
			t.Errorf("it failed with %q, which does not contain %q", got, want)
		}
	}
}

func TestAScriptThatCleansUpPasses(t *testing.T) {
	t.Parallel()
	if got := runScript(t, "exec sh -c 'sleep 4321 >out 2>&1 & kill $!'\n", time.Minute); got != "" {
		t.Errorf("it failed with %s", got)
	}
}

func TestEventuallyHasADeadlineAndSaysWhatItWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "ready")
	var said strings.Builder
	if status := eventually([]string{"cat", file}, time.Second, &said); status != 1 {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{"cat " + file, "No such file", "1s"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q does not contain %q", said.String(), want)
		}
	}
	said.Reset()
	counted := fmt.Sprintf("echo x >>%s; test $(wc -l <%s) = 3", file, file)
	if status := eventually([]string{counted}, time.Minute, &said); status != 0 {
		t.Errorf("status %d: %s", status, said.String())
	}
	if status := eventually(nil, time.Minute, &said); status != 2 || !strings.Contains(said.String(), "usage") {
		t.Errorf("status %d: %s", status, said.String())
	}
}
