// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// The overview has the state of each loop, and /debug/controllers?format=json is the same. A handler that is added below a
// path gets the requests for all paths below it.
func TestTheOverviewOfAManager(t *testing.T) {
	l := listen(t)
	m, err := manager.New(somePods(t).Config(), manager.Serve(l, serving.Options{Plain: true}), manager.Instance("node-2"),
		manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Add(controller.New("breaking", func(_ context.Context, req controller.Request) (controller.Result, error) {
		switch req.Key.Name {
		case "good":
			return controller.Result{}, controller.Terminal(errors.New("never"))
		case "bad":
			return controller.Result{}, errors.New("the oven is cold")
		}
		return controller.Result{}, nil
	}, controller.For(cache.Informer[*corev1.Pod](m)), controller.RateLimit(&workqueue.Exponential[object.Key]{Base: time.Hour}))); err != nil {
		t.Fatal(err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("below " + r.URL.Path)) }) //nolint:gosec // text of a test
	if err := m.HandleBelow("/own", "of a test", handler); err != nil {
		t.Fatal(err)
	}
	if err := m.HandleBelow("/own", "of a test", handler); err == nil || !strings.Contains(err.Error(), "has a handler") {
		t.Errorf("a second handler of a path: %v", err)
	}
	run(t, m)
	base := "http://" + l.Addr().String()
	var o manager.Overview
	waitFor(t, "the keys to fail", func() bool {
		_, text := ask(t, base+"/debug/controllers?format=json", "")
		o = manager.Overview{}
		return json.Unmarshal([]byte(text), &o) == nil && len(o.Loops) == 1 && o.Loops[0].Failing == 1 && o.Loops[0].GivenUp == 1 && o.Loops[0].Running == 0
	})
	loop := o.Loops[0]
	if o.Instance != "node-2" || o.State != "working" || loop.Name != "breaking" || loop.Kind != "Pod" || loop.Runs < 2 || loop.Took.Count() != loop.Runs ||
		len(loop.Failed) != 2 || len(loop.Informers) != 1 || !loop.Informers[0].Synced {
		t.Errorf("the overview is %+v", o)
	}
	for _, f := range loop.Failed {
		if f.GivenUp != (f.Key == "ns/good") || f.GivenUp != (f.Next == nil) {
			t.Errorf("the key %s is %+v, want the given up one without a next try", f.Key, f)
		}
	}
	if code, text := ask(t, base+"/debug/controllers?format=yaml", ""); code != http.StatusBadRequest || !strings.Contains(text, `format="yaml": want json or text`) {
		t.Errorf("another format is answered with %d %s", code, text)
	}
	if _, text := ask(t, base+"/own/a/b", ""); text != "below /own/a/b" {
		t.Errorf("a path below /own is answered with %q", text)
	}
	if err := m.HandleBelow("/late", "of a test", handler); err == nil || !strings.Contains(err.Error(), "is running already") {
		t.Errorf("a handler while the manager runs: %v", err)
	}
}
