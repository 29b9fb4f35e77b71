// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
)

func TestEachLoopOfAControllerShowsEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		m, err := manager.New(podServer(t).Config(), manager.Serve(l, manager.Serving{Plain: true}), manager.Instance("a"))
		if err != nil {
			t.Fatal(err)
		}
		pods := cache.Informer[*corev1.Pod](m)
		held := make(chan struct{})
		stuck := func(context.Context, controller.Request) (controller.Result, error) {
			<-held
			return controller.Result{}, nil
		}
		p := controller.Join("pair", controller.New("pair-one", stuck, controller.For(pods)), controller.New("pair-two", stuck, controller.For(pods)))
		if err := m.Add(p); err != nil {
			t.Fatal(err)
		}
		if err := m.Add(controller.New("pair-two", stuck, controller.For(pods))); err == nil || !strings.Contains(err.Error(), "pair has a loop named pair-two too") {
			t.Errorf("a second loop of one name: %v", err)
		}
		ended, stop := ending(t, m)
		time.Sleep(time.Minute)
		for path, wants := range map[string][]string{
			"/debug/controllers":                     {"\npair-one\n", "\npair-two\n", "ns/a"},
			"/debug/controllers?controller=pair-two": {"\npair-two\n"},
			"/metrics": {
				`workqueue_depth{name="pair-one"}`, `workqueue_depth{name="pair-two"}`,
				`setpoint_controller_failures_total{controller="pair-one"}`, `setpoint_controller_failures_total{controller="pair-two"}`,
			},
		} {
			code, text := l.get(t, false, path, "")
			for _, want := range wants {
				if code != http.StatusOK || !strings.Contains(text, want) {
					t.Errorf("%s lacks %q: %d", path, want, code)
				}
			}
		}
		stop()
		says(t, within(t, ended, time.Now(), limit), "pair (working on ns/a for 1m12s in pair-one, ns/a for 1m12s in pair-two)")
		close(held)
	})
}
