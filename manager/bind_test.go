// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A controller that is written as the README shows, with no option about its host: the
// answer of a create is lost, and the watch is late by a minute.
func TestAControllerThatIsAddedKnowsWhatBecameOfLostAnswersAndLogsForTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(podsResource)
		server.LoseAnswer(func(q *fakeapi.Request) bool { return q.Verb == "create" })
		if err := server.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "parent"}}); err != nil {
			t.Fatal(err)
		}
		var log lockedBuffer
		m, err := manager.New(&rest.Config{Host: "http://in-memory", Transport: server},
			manager.Log(slog.New(slog.NewTextHandler(&log, nil))), manager.Instance("the one"))
		if err != nil {
			t.Fatal(err)
		}
		pods := cache.Informer[*corev1.Pod](m)
		made := 0
		c := controller.New("maker", func(ctx context.Context, req controller.Request) (controller.Result, error) {
			if req.Key.Name != "parent" || pods.Snapshot().Len() > 1 {
				return controller.Result{}, nil
			}
			made++
			server.HoldWatches(true)
			_, err := client.For[*corev1.Pod](m.Client()).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "child-"}})
			return controller.Result{}, err
		}, controller.For(pods))
		if err := m.Add(c); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if waiting := c.Status(0).Waiting["ns/parent"]; made != 1 || waiting == "" {
			t.Errorf("made %d children while the first was not shown; the key waits for %q", made, waiting)
		}
		server.HoldWatches(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if all := server.Keys(); len(all) != 2 {
			t.Errorf("there are %q, want the parent and one child", all)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if text := log.String(); !strings.Contains(text, "controller=maker") {
			t.Errorf("the manager's log has nothing of the controller:\n%s", text)
		}
	})
}
