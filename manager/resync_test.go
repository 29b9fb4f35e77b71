// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestControllersLookAtEverythingAgainWithinTheResyncPeriod(t *testing.T) {
	for _, test := range []struct {
		name         string
		least        time.Duration
		own          []controller.Option
		fewest, most int32 // runs within ten hours, after the first
	}{
		{"that of the manager", time.Hour, nil, 5, 10},
		{"that of the controller", time.Hour, []controller.Option{controller.Resync(10 * time.Minute)}, 59, 60},
		{"none", 0, nil, 0, 0},
		{"less than none", -time.Hour, nil, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := fakeapi.New().Serve(podsResource)
				if err := server.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}); err != nil {
					t.Fatal(err)
				}
				m, err := manager.New(&rest.Config{Host: "http://in-memory", Transport: server}, manager.Resync(test.least))
				if err != nil {
					t.Fatal(err)
				}
				var runs atomic.Int32
				c := controller.New("looker", func(context.Context, controller.Request) (controller.Result, error) {
					runs.Add(1)
					return controller.Result{}, nil
				}, append(test.own, controller.For(cache.Informer[*corev1.Pod](m)))...)
				if err := m.Add(c); err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- m.Run(ctx) }()
				time.Sleep(10*time.Hour + time.Minute)
				synctest.Wait()
				if again := runs.Load() - 1; again < test.fewest || again > test.most {
					t.Errorf("%d more runs in ten hours, want %d to %d", again, test.fewest, test.most)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
