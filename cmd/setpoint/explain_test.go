// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/scripttest"
)

const (
	explainScripts = "testdata/explain"

	// explainedAtATime is how many scripts run at a time. They wait for controllers most of the time.
	explainedAtATime = 12
)

// updateAnswers is the environment variable with which TestExplain writes the answers into its scripts.
const updateAnswers = "SETPOINT_UPDATE_ANSWERS"

// TestExplain runs the scripts of testdata/explain, each of which shows one trouble and the whole answer of "setpoint explain".
// They run at the same time, on one control plane with four Nodes, one "setpoint manager" and the operator of a user, in a namespace each.
//
// The Nodes differ, so that a Pod can be refused by each for another reason: node-1 has the label disk=ssd, node-2 has the
// taint dedicated=db, and node-3 is cordoned.
func TestExplain(t *testing.T) {
	t.Parallel()
	cluster := controlplanetest.Start(t, controlplanetest.Options{Nodes: 4})
	for _, args := range [][]string{
		{"label", "node", "node-1", "disk=ssd"}, {"taint", "node", "node-2", "dedicated=db:NoSchedule"}, {"cordon", "node-3"},
	} {
		if _, err := cluster.Kubectl(args...); err != nil {
			t.Fatal(err)
		}
	}
	startManager(t, cluster)
	startOperator(t, cluster)
	cache := t.TempDir()
	t.Run("scripts", func(t *testing.T) { // ends before the manager does
		scripttest.Run(t, explainedAtATime, scripts(t, explainScripts, func(e *testscript.Env) error {
			namespace := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
			own := filepath.Join(e.WorkDir, "kubeconfig")
			text, err := os.ReadFile(cluster.Kubeconfig)
			if err == nil {
				err = os.WriteFile(own, text, 0o600) //nolint:gosec // in the folder of the script
			}
			e.Setenv("KUBECONFIG", own)
			e.Setenv("KUBECACHEDIR", cache)
			for _, args := range [][]string{
				{"create", "namespace", namespace}, {"config", "set-context", "--current", "--namespace", namespace, "--kubeconfig", own},
			} {
				if err == nil {
					_, err = cluster.Kubectl(args...)
				}
			}
			return err
		}))
	})
}

// startManager runs "setpoint manager" until the test ends. Each controller uses an account of its own, so that a script can
// take a right from one of them.
func startManager(t *testing.T, cluster *controlplanetest.Cluster) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "manager.log"))
	if err != nil {
		t.Fatal(err)
	}
	manager := exec.Command("setpoint", "manager", "--kubeconfig", cluster.Kubeconfig, "--secure-port", freePort(t),
		"--use-service-account-credentials", "--node-monitor-grace-period=20s", "--node-monitor-period=1s", "--horizontal-pod-autoscaler-sync-period=2s",
		// A manager that cannot renew its lease ends, and with it every script. On a busy machine a renewal has taken 10 s, the default.
		"--leader-elect-lease-duration=3m", "--leader-elect-renew-deadline=2m")
	manager.Stdout, manager.Stderr = log, log
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := errors.Join(manager.Process.Signal(syscall.SIGTERM), manager.Wait())
		text, readErr := os.ReadFile(log.Name())
		if err = errors.Join(err, readErr, log.Close()); err != nil || t.Failed() {
			t.Errorf("the manager ended with %v and logged\n%s", err, text)
		}
	})
	controlplanetest.Eventually(t, "the manager has announced itself", func() bool {
		out, err := cluster.Kubectl("get", "lease", "setpoint-manager", "-n", "kube-system", "-o", "jsonpath={.metadata.annotations}")
		return err == nil && strings.Contains(out, "setpoint.io/serves")
	})
}

// explained OBJECT TEXT FILE [LEFT-OUT] waits until the first sentence of "setpoint explain OBJECT" has the text, and then until the whole
// answer is the file. What differs from run to run has names in the file: TIME, AGE, RUN, HASH, ID and MINUTE.
// Lines that match the regular expression LEFT-OUT are left out: those that depend on which of two controllers acts first.
func explained(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: explained OBJECT TEXT FILE [LEFT-OUT]")
	}
	object, text, file := args[0], args[1], args[2]
	var leftOut *regexp.Regexp
	if len(args) == 4 {
		leftOut = regexp.MustCompile("(?m)^.*(" + args[3] + ").*\n")
	}
	explain := func(ts *testscript.TestScript, object string) string {
		answer := explain(ts, object)
		if leftOut != nil {
			answer = leftOut.ReplaceAllString(answer, "")
		}
		return answer
	}
	want, answer := ts.ReadFile(file), ""
	until(ts, fmt.Sprintf("%q in the first sentence about %s", text, object), func() bool {
		answer = explain(ts, object)
		return strings.Contains(sentence(answer), text)
	})
	if os.Getenv(updateAnswers) != "" {
		time.Sleep(3 * time.Second) // other controllers may still write
		ts.Check(updateAnswer(strings.TrimPrefix(filepath.Base(ts.Getenv("WORK")), "script-"), file, explain(ts, object)))
		return
	}
	if answer != want && !scripttest.Within(answerPatience, 100*time.Millisecond, func() bool {
		answer = explain(ts, object)
		return answer == want
	}) {
		ts.Fatalf("the answer about %s is\n%s\nwant\n%s", object, answer, want)
	}
}

// answerPatience is how long the answer may take to become the expected one, once its first sentence is right.
const answerPatience = 2 * time.Minute

// explain returns the answer about an object, without what differs from run to run.
func explain(ts *testscript.TestScript, object string) string {
	if err := ts.Exec("sh", "-c", "setpoint explain "+object+" 2>&1"); err != nil {
		return "[" + err.Error() + "]\n" + ts.ReadFile("stdout")
	}
	return settled(ts.ReadFile("stdout"))
}

// sentence returns the first sentence of an answer, which is its second line.
func sentence(answer string) string {
	lines := strings.SplitN(answer, "\n", 3)
	return lines[min(1, len(lines)-1)]
}

// varying are the parts of an answer that differ from run to run. Names that a server or a controller has made up have
// letters that no word has without a vowel.
// Source: k8s.io/apimachinery/pkg/util/rand, alphanums.
var varying = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "DATE"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b\d+ (s|min) ago`), "AGE ago"},
	{regexp.MustCompile(`since \d+ (s|min)`), "since AGE"},
	{regexp.MustCompile(`run \d+\b`), "run RUN"},
	{regexp.MustCompile(`(?m), \d+ times$`), ""},
	{regexp.MustCompile(` \d+ times within`), " N times within"},
	{regexp.MustCompile(`attempt \d+`), "attempt N"},
	{regexp.MustCompile(`, \d+ runs in a row changed nothing`), ""},
	{regexp.MustCompile(`, \d+ runs in a row, each`), ", N runs in a row, each"},
	{regexp.MustCompile(`, (runs again|the back-off ends) at TIME`), ""},
	{regexp.MustCompile(`(?m)^(  \S+)  (done|again), the last run`), "$1  ran, the last run"},
	{regexp.MustCompile(`(?m)^  TIME +`), "  TIME  "},                     // the depth of a step
	{regexp.MustCompile(`(?m)^  TIME  probably setpoint-nodes .*\n`), ""}, // that a Pod started or ended may be a cause of its own
	{regexp.MustCompile(`(?m)^  TIME  ttl-controller, .*\n`), ""},
	{regexp.MustCompile(`created (ServiceAccount|ConfigMap) (old|older)/\S+`), "created an object of each namespace"},
	{regexp.MustCompile(`(serviceaccount|root-ca-certificate-publisher)-controller, run RUN`), "a controller, run RUN"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f-]{27}\b`), "UID"},
	{regexp.MustCompile(`at TIME(, TIME)+`), "at TIMES"},
	{regexp.MustCompile(`(assigned \S+ to) node-\d`), "$1 NODE"},
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b`), "-HASH"},
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-ID"},
	{regexp.MustCompile(`-\d{8}\b`), "-MINUTE"}, // of a Job of a CronJob
}

// unordered are the sections whose lines depend on what came first within a second.
var unordered = []string{"LOOPS", "WHO OWNS WHICH FIELDS", "EVENTS"}

// settled replaces what differs from run to run, and sorts the lines of sections that have no order within a second.
func settled(answer string) string {
	for _, v := range varying {
		answer = v.pattern.ReplaceAllString(answer, v.with)
	}
	sections := strings.Split(strings.TrimRight(answer, "\n"), "\n\n")
	for i, section := range sections {
		title, lines, _ := strings.Cut(section, "\n")
		if slices.Contains(unordered, title) {
			sorted := strings.Split(lines, "\n")
			slices.Sort(sorted)
			sections[i] = title + "\n" + strings.Join(slices.Compact(sorted), "\n")
		}
	}
	return strings.Join(sections, "\n\n") + "\n"
}

// updating lets one script at a time be written.
var updating sync.Mutex

// updateAnswer writes an answer into a file of a script.
func updateAnswer(script, file, answer string) error {
	updating.Lock()
	defer updating.Unlock()
	path := filepath.Join(explainScripts, script+".txtar")
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return err
	}
	for i := range archive.Files {
		if archive.Files[i].Name == file {
			archive.Files[i].Data = []byte(answer)
		}
	}
	return os.WriteFile(path, txtar.Format(archive), 0o600)
}
