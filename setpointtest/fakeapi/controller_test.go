// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// newReviewer returns a controller that marks each ConfigMap as reviewed.
func newReviewer(h controller.Host) *controller.Controller {
	maps := cache.Informer[*corev1.ConfigMap](h)
	return controller.New("reviewer", func(ctx context.Context, req controller.Request) (controller.Result, error) {
		m, err := maps.Get(req.Key)
		if apierrors.IsNotFound(err) {
			return controller.Result{}, nil
		}
		if err != nil || m.Annotations["reviewed"] == "yes" {
			return controller.Result{}, err
		}
		m = m.DeepCopy()
		m.Annotations = map[string]string{"reviewed": "yes"}
		_, err = maps.Update(ctx, m)
		return controller.Result{}, err
	}, controller.For(maps))
}

// A controller is tested without a cluster. In the bubble all its pauses pass at once, and
// the test goes the same way each time: here the server fails for ten minutes.
func TestAControllerIsTestedWithoutACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New()
		maps := api.Serve(configMaps)
		mgr, err := manager.New(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		if err := mgr.Add(newReviewer(mgr)); err != nil {
			t.Fatal(err)
		}
		setpointtest.Run(t, mgr)

		failsUntil := time.Now().Add(10 * time.Minute)
		maps.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" && time.Now().Before(failsUntil) {
				return fakeapi.Unavailable(-1)
			}
			return nil
		})
		key := object.Key{Namespace: "shop", Name: "prices"}
		if err := maps.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if got := maps.Get(key).GetAnnotations()["reviewed"]; got != "" {
			t.Errorf("reviewed %q while the server fails", got)
		}
		time.Sleep(30 * time.Minute)
		if got := maps.Get(key).GetAnnotations()["reviewed"]; got != "yes" {
			t.Errorf("reviewed %q when the server works again", got)
		}
	})
}
