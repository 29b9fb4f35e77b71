// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/runs"
)

// failing returns a manager with a controller whose runs fail, and a file of its record.
func failing(t *testing.T, path string, options ...manager.Option) *manager.Manager {
	t.Helper()
	m, err := manager.New(somePods(t).Config(), append(options, manager.RunRecordFile(path))...)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Add(controller.New("breaking", func(context.Context, controller.Request) (controller.Result, error) {
		return controller.Result{}, errors.New("the oven is cold")
	}, controller.For(cache.Informer[*corev1.Pod](m)))); err != nil {
		t.Fatal(err)
	}
	return m
}

var goodPod = runs.Object{Kind: "Pod", Namespace: "ns", Name: "good"}

// A manager that begins again answers with the runs from before.
func TestTheRecordSurvivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	first := failing(t, path)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- first.Run(ctx) }()
	waitFor(t, "a run", func() bool { found, _ := first.Runs().Find(runs.Query{Object: goodPod}); return len(found) > 0 })
	second := failing(t, path)
	if err := second.Run(t.Context()); !errors.Is(err, runs.ErrFileInUse) || !strings.Contains(err.Error(), path) {
		t.Errorf("a second manager with the file ends with %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	before, _ := first.Runs().Find(runs.Query{Object: goodPod})
	l := listen(t)
	third := failing(t, path, manager.Serve(l, serving.Options{Plain: true}))
	run(t, third)
	waitFor(t, "a run of the third manager", func() bool { return third.Runs().Stats().Runs > 0 })
	found, _ := third.Runs().Find(runs.Query{Object: goodPod})
	oldest := found[len(found)-1]
	if !oldest.Restored || oldest.Number != before[len(before)-1].Number || oldest.Error != "the oven is cold" {
		t.Errorf("after a restart the oldest run is %+v, want %+v", oldest, before[len(before)-1])
	}
	for i := range found {
		if !found[i].Restored && found[i].Number <= before[0].Number {
			t.Errorf("the number %d is used again", found[i].Number)
		}
	}
	if _, page := ask(t, "http://"+l.Addr().String()+"/debug/runs", ""); !strings.Contains(page, "entries of earlier processes") {
		t.Errorf("the page is\n%s", page)
	}
}

// A file that cannot be used is logged, and the manager works.
func TestAManagerWorksWithoutTheFileOfItsRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes")
	if err := os.WriteFile(path, []byte("what I must not forget"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	m := failing(t, path, manager.Log(slog.New(slog.NewTextHandler(&log, nil))))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	waitFor(t, "a run", func() bool { return m.Runs().Stats().Runs > 0 })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "the record of runs ends with this process") || !strings.Contains(log.String(), "is not a file of runs") {
		t.Errorf("the log is\n%s", log.String())
	}
}
