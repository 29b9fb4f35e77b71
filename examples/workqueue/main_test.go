// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
	"github.com/setpoint-io/setpoint/workqueue"
)

// text is a writer that many may write to and a test reads from.
type text struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (w *text) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes.Write(p)
}

func (w *text) has(words ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(w.bytes.String()) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return true
		}
	}
	return false
}

// lacks returns nil once a line has all the words.
func (w *text) lacks(words ...string) error {
	if w.has(words...) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Errorf("no line has %q:\n%s", words, w.bytes.String())
}

func TestAKeyThatFailsIsRetriedFiveTimesAndDroppedAndDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := workqueue.New(workqueue.Options[object.Key]{})
		log := new(text)
		var mu sync.Mutex
		runs := map[string]int{}
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				work(queue, func(key object.Key) error {
					mu.Lock()
					defer mu.Unlock()
					runs[key.Name]++
					if key.Name == "broken" {
						return errors.New("no such image")
					}
					return nil
				}, slog.New(slog.NewTextHandler(log, nil)))
			})
		}
		count := func() map[string]int {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return maps.Clone(runs)
		}
		queue.Add(object.Key{Name: "broken"})
		want := map[string]int{"broken": 1}
		for i := range 50 {
			queue.Add(object.Key{Name: fmt.Sprint("good-", i)})
			want[fmt.Sprint("good-", i)] = 1
		}
		if got := count(); !maps.Equal(got, want) {
			t.Errorf("without waiting these ran: %v, want each once", got)
		}
		time.Sleep(time.Hour)
		want["broken"] = 1 + retries
		if got := count(); !maps.Equal(got, want) {
			t.Errorf("after an hour these had run: %v, want the broken one %d times", got, 1+retries)
		}
		if !log.has("level=ERROR", "dropped", "pod=broken", "retries=5", "no such image") {
			t.Errorf("the log does not say that it was dropped: %s", log.bytes.String())
		}
		queue.Add(object.Key{Name: "broken"}) // it changed: all begins anew
		time.Sleep(time.Hour)
		if got := count()["broken"]; got != 2*(1+retries) {
			t.Errorf("after a change it had run %d times, want %d", got, 2*(1+retries))
		}
		queue.ShutDown()
		all.Wait()
	})
}

func TestPodsOfARealServerAreWorkedOn(t *testing.T) {
	cluster := setpointtest.Cluster(t)
	namespace := cluster.Namespace(t)
	pods := client.For[*corev1.Pod](cluster.Client)
	for name, annotations := range map[string]map[string]string{
		"web": nil, "broken": {"example.com/fail": "it is meant to"},
	} {
		_, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, log := new(text), new(text)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, cluster.Config, out, slog.New(slog.NewTextHandler(log, nil))) }()

	web := object.Key{Namespace: namespace, Name: "web"}
	setpointtest.Eventually(t, "the Pod is seen", func() error { return out.lacks("there is Pod", web.String()) })
	setpointtest.Eventually(t, "the broken Pod is dropped loudly", func() error {
		return log.lacks("level=ERROR", "dropped", namespace+"/broken", "retries=5", "it is meant to")
	})
	if err := pods.Delete(t.Context(), web, client.GracePeriod(0)); err != nil {
		t.Fatal(err)
	}
	setpointtest.Eventually(t, "its end is seen", func() error { return out.lacks("there is no Pod", web.String()) })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
