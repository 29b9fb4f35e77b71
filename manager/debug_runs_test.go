// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/runs"
)

// A manager records the runs of its controllers without being asked to, and shows them to people and programs. The
// annotation's value never shows.
func TestTheRunsOfAManagersControllersAreShown(t *testing.T) {
	const hidden = "value-that-nobody-may-see"
	l := listen(t)
	m, err := manager.New(somePods(t).Config(), manager.Serve(l, serving.Options{Plain: true}), manager.Aliases(map[string]string{"mk": "marker"}),
		manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	pods := cache.Informer[*corev1.Pod](m)
	if err := m.Add(controller.New("marker", func(ctx context.Context, req controller.Request) (controller.Result, error) {
		pod, err := pods.Get(req.Key)
		if err != nil {
			return controller.Result{}, err
		}
		if pod.Annotations["marked"] != "" {
			controller.Because(ctx, controller.Reason{Code: "Marked", Text: "the Pod is marked", Ends: "the mark is removed"})
			return controller.Result{After: time.Hour}, nil
		}
		patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"marked": hidden}}})
		if err == nil {
			_, err = client.For[*corev1.Pod](m.Client()).Patch(ctx, req.Key, patch)
		}
		return controller.Result{}, err
	}, controller.For(pods))); err != nil {
		t.Fatal(err)
	}
	run(t, m)
	base := "http://" + l.Addr().String() + "/debug/runs"
	page := ""
	for _, line := range []string{
		`^marker ns/good: Marked: the Pod is marked \(until the mark is removed\); runs again at \d\d:`,
		`^    cause   pods: Updated Pod ns/good at \d+, before that at \d+$`,
		`^    write   patch Pod ns/good at \d+: metadata.annotations.marked$`,
		`^    └ \d\d:\d\d:\d\d\.\d+  marker ns/good, run \d+: patch Pod ns/good at \d+`,
	} {
		waitFor(t, "the line "+line, func() bool {
			_, page = ask(t, base+"?controller=mk&key=ns/good&origins", "")
			return regexp.MustCompile(`(?m)` + line).MatchString(page)
		})
	}
	if strings.Contains(page, "ns/bad") {
		t.Errorf("?key=ns/good shows another key:\n%s", page)
	}
	_, text := ask(t, base+"?kind=Pod&namespace=ns&name=good&format=json", "")
	var found struct {
		Runs    []runs.Run
		Present []runs.Run
		Format  int
		Loops   []runs.KeyState
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil || len(found.Runs) < 2 || len(found.Present) != 1 || found.Present[0].Reasons[0].Code != "Marked" {
		t.Errorf("in JSON it is %s (%v), want two runs and a reason", text, err)
	}
	if found.Format != runs.PageFormat || len(found.Loops) != 1 || found.Loops[0].Controller != "marker" || found.Loops[0].Key != "ns/good" ||
		found.Loops[0].State != runs.StateDelayed || found.Loops[0].Until == nil {
		t.Errorf("in JSON it is %s, want format %d and the loop of marker, which waits for a time", text, runs.PageFormat)
	}
	if _, text := ask(t, base+"?kind=Pod&namespace=ns&name=good", ""); !strings.Contains(text, "\nLOOPS\nmarker ns/good: delayed, until ") {
		t.Errorf("for people it is %s, want the loop of marker", text)
	}
	for query, want := range map[string]bool{
		"?namespace=ns&wrote&contains=goo": true, "?namespace=elsewhere": false, "?contains=other": false, "?since=2999-01-01T00:00:00Z": false,
	} {
		if _, text := ask(t, base+query, ""); strings.Contains(text, "marker ns/good") != want {
			t.Errorf("%s shows the runs of ns/good: %v, want %v; the page is\n%s", query, !want, want, text)
		}
	}
	if strings.Contains(page+text, hidden) {
		t.Error("the value that was written is shown")
	}
	for query, want := range map[string]string{
		"?limit=0": "limit=\"0\": want a number of runs, at least 1", "?format=yaml": "format=\"yaml\": want json or text",
		"?since=5m": "since=\"5m\": want a time such as", "?name=web": "an object needs kind=KIND and name=NAME", "?controller=makrer": `no controller "makrer" runs here; did you mean "marker"?`,
	} {
		if code, text := ask(t, base+query, ""); code < 400 || !strings.Contains(text, want) {
			t.Errorf("%s is answered with %d %q, want an error with %q", query, code, text, want)
		}
	}
}

func TestARecordCanBeSwitchedOff(t *testing.T) {
	l := listen(t)
	m, err := manager.New(somePods(t).Config(), manager.Serve(l, serving.Options{Plain: true}), manager.RunRecord(0))
	if err != nil {
		t.Fatal(err)
	}
	if m.Runs() != nil {
		t.Error("a manager with a record of 0 bytes has one")
	}
	run(t, m)
	waitFor(t, "an answer", func() bool {
		code, text := ask(t, "http://"+l.Addr().String()+"/debug/runs", "")
		return code == http.StatusNotFound && strings.Contains(text, "runs are not recorded")
	})
	if _, err := manager.New(somePods(t).Config(), manager.RunRecord(1000)); err == nil || !strings.Contains(err.Error(), "a record of runs of 1000 bytes: want 262144 to") {
		t.Errorf("a record of 1000 bytes: %v, want an error with the bounds", err)
	}
}
