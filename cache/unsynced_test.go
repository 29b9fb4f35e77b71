// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// An object that an informer has not listed yet may exist: neither read concludes that it
// does not, whatever the server has answered so far.
func TestReadsBeforeTheFirstSyncSaySo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "web")
		key := object.Key{Namespace: "team-a", Name: "web"}
		informer := cache.Informer[*corev1.Pod](w.factory)
		check := func(when, reason string) {
			t.Helper()
			_, getting := informer.Get(key)
			_, listing := informer.List(nil)
			for _, err := range []error{getting, listing} {
				if _, ok := errors.AsType[*cache.NotSyncedError](err); !ok || apierrors.IsNotFound(err) {
					t.Errorf("%s: %v", when, err)
					continue
				}
				if text := err.Error(); !strings.HasPrefix(text, "the informer of pods has not synced: ") || !strings.Contains(text, reason) {
					t.Errorf("%s: %v", when, err)
				}
			}
		}
		check("before it runs", "the informer has not been started")
		var serving atomic.Bool
		w.server.Before(func(*fakeapi.Request) *metav1.Status {
			if serving.Load() {
				return nil
			}
			return &metav1.Status{
				Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound,
				Message: "the server could not find the requested resource",
			}
		})
		stop := w.run(t)
		check("while the server does not serve the kind", "could not find the requested resource")
		serving.Store(true)
		if err := informer.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if pod, err := informer.Get(key); err != nil || pod.Name != "web" {
			t.Errorf("have %v, %v", pod, err)
		}
		if _, err := informer.Get(object.Key{Namespace: "team-a", Name: "none"}); !apierrors.IsNotFound(err) {
			t.Errorf("an object that does not exist: %v", err)
		}
		stop()
		if pod, err := informer.Get(key); err != nil || pod.Name != "web" {
			t.Errorf("after the stop: %v, %v", pod, err)
		}
	})
}
