// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// diary keeps what happens in its order, each in a row once.
type diary struct {
	next http.RoundTripper
	mu   sync.Mutex
	said []string
}

func (d *diary) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.said) == 0 || d.said[len(d.said)-1] != what {
		d.said = append(d.said, what)
	}
}

// RoundTrip notes what a server is asked for: it takes half a second for the list of Pods
// and for an event, so that who does not wait for the answer is found out.
func (d *diary) RoundTrip(r *http.Request) (*http.Response, error) {
	var what string
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/pods"):
		time.Sleep(time.Second / 2)
		what = "the Pods are told"
	case strings.HasSuffix(path, "/events") && r.Method == http.MethodPost:
		time.Sleep(time.Second / 2)
		what = "an event is written"
	case strings.Contains(path, "/leases") && r.Method == http.MethodPost:
		what = "the lease is taken"
	case strings.Contains(path, "/leases") && r.Method == http.MethodPut:
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		if !strings.Contains(string(text), "the one") { // who holds it
			what = "the lease is given back"
		}
	}
	response, err := d.next.RoundTrip(r)
	if what != "" {
		d.note(what)
	}
	return response, err
}

// A loop needs caches that have synced, and works only with the lease; at the end,
// what runs is finished, what it says is written, and only then may somebody else begin.
func TestAManagerBeginsAndEndsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}
		server := podServer(t)
		server.Serve(events)
		d := &diary{next: server}
		m, err := manager.New(&rest.Config{Host: "http://in-memory", Transport: d},
			manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))), manager.Instance("the one"), manager.LeaderElection(locked))
		if err != nil {
			t.Fatal(err)
		}
		pods := cache.Informer[*corev1.Pod](m)
		recorder := m.Recorder("worker")
		begun := make(chan struct{})
		worker := controller.New("worker", func(ctx context.Context, req controller.Request) (controller.Result, error) {
			d.note("a run begins")
			close(begun)
			pod, err := pods.Get(req.Key)
			if err != nil {
				return controller.Result{}, err
			}
			<-ctx.Done()
			time.Sleep(time.Second) // it has something to finish
			recorder.Normal(pod, "Finished", "Finish", "the run is finished")
			d.note("the run ends")
			return controller.Result{}, nil
		}, controller.For(pods))
		if err := m.Add(worker); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx); d.note("the manager has ended") }()
		<-begun
		time.Sleep(time.Minute)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		want := []string{
			"the Pods are told", "a run begins", "the run ends", "an event is written", "the lease is given back", "the manager has ended",
		}
		// The world is learned of while the lease is asked for: either may be first.
		said := slices.DeleteFunc(slices.Clone(d.said), func(what string) bool { return what == "the lease is taken" })
		if !slices.Equal(said, want) {
			t.Errorf("it happened in this order: %q", d.said)
		}
		if slices.Index(d.said, "the lease is taken") > slices.Index(d.said, "a run begins") || !slices.Contains(d.said, "the lease is taken") {
			t.Errorf("a run began without the lease: %q", d.said)
		}
		if _, err := client.For[*corev1.Pod](m.Client()).Create(t.Context(), &corev1.Pod{}); err == nil || client.Unanswered(err) {
			t.Errorf("a manager that has ended may write: %v", err)
		}
	})
}
