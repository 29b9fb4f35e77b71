// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// A server that knows selectors: what a write takes out of one is gone for the next run,
// and what was never in it holds nothing up.
func TestInAClusterAFilteredInformerShowsWhatWasWrittenOrIsNotWaitedFor(t *testing.T) {
	cluster := shared.Get(t)
	c := cluster.Client
	maps := client.For[*corev1.ConfigMap](c)
	namespace := cluster.Namespace(t)
	factory := cache.NewFactory(c, nil)
	informer := cache.Informer[*corev1.ConfigMap](factory, cache.InNamespace(namespace), cache.WithLabels("ours"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- factory.Run(ctx) }()
	const rounds = 10
	runs, done := 0, make(chan struct{})
	loop := controller.New("test", func(ctx context.Context, req controller.Request) (controller.Result, error) {
		defer func() { runs++ }()
		in := object.Key{Namespace: namespace, Name: "in"}
		switch _, err := informer.Get(in); {
		case runs >= rounds:
			if runs == rounds {
				close(done)
			}
			return controller.Result{}, nil
		case err == nil: // it is there: out of the selection with it
			patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": nil}})
			if err == nil {
				_, err = maps.Patch(ctx, in, patch)
			}
			if runs%2 != 1 {
				t.Errorf("run %d sees what the run before it took out", runs)
			}
			return controller.Result{After: 1}, err
		}
		if runs%2 != 0 {
			t.Errorf("run %d does not see what the run before it made", runs)
		}
		if runs == 0 {
			if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: in.Name}}); err != nil {
				return controller.Result{}, err
			}
		}
		for range 5 { // which it never shows
			if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "out-"}}); err != nil {
				return controller.Result{}, err
			}
		}
		patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"ours": ""}}})
		if err == nil {
			_, err = maps.Patch(ctx, in, patch)
		}
		return controller.Result{After: 1}, err
	}, controller.Reads(informer), quiet())
	loop.Queue().Add(object.Key{Name: "it"})
	go func() { ended <- loop.Run(ctx) }()
	receive(t, done, "the last run")
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
