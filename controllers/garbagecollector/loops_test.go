// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers/garbagecollector"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// watched runs the collector with what a new leader waits for.
type watched struct {
	controller.Loop
	caughtUp chan []string // kinds of the informers
}

func (w watched) Run(ctx context.Context) error {
	return w.Loop.Run(controller.WithCatchUp(ctx, func(_ context.Context, l controller.Loop) {
		var kinds []string
		for _, informer := range l.Informers() {
			kinds = append(kinds, informer.Kind())
		}
		w.caughtUp <- kinds
	}))
}

// The most dangerous controller must not be the one that nobody sees.
func TestTheCollectorIsSeenAsAnyController(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := fakeapi.New(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	m, err := manager.New(server.Config(), manager.Serve(l, serving.Options{Plain: true}))
	if err != nil {
		t.Fatal(err)
	}
	c, err := garbagecollector.New(m, garbagecollector.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	loop, ok := c.(controller.Loop)
	if !ok {
		t.Fatal("the collector shows no loop")
	}
	w := watched{loop, make(chan []string, 1)}
	if err := m.Add(w); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	select {
	case kinds := <-w.caughtUp:
		if !slices.Contains(kinds, "pods") {
			t.Errorf("a new leader waits for %v, and not for the Pods that the collector reads", kinds)
		}
	case <-time.After(time.Minute):
		t.Error("the collector does not catch up with the leader before")
	}
	for path, want := range map[string]string{
		"/debug/controllers": "\n" + garbagecollector.Name + "\n",
		"/metrics":           `workqueue_depth{name="` + garbagecollector.Name + `"}`,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q (%v)", path, want, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAKindThatCannotBeReadInTimeIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
		secrets := object.Resource{Version: "v1", Plural: "secrets", Kind: "Secret", Namespaced: true}
		server := fakeapi.New(pods)
		server.Serve(secrets).Before(func(q *fakeapi.Request) *metav1.Status { return fakeapi.Forbidden("secrets") })
		var metrics prometheus.Collector
		managertest.Run(t, server.Config(), managertest.MakingMetrics(garbagecollector.New, garbagecollector.Defaults(), &metrics))
		const failed = "garbagecollector_controller_resources_sync_error_total"
		synctest.Wait()
		if got := managertest.Series(t, metrics)[failed]; got != 0 {
			t.Errorf("before the time is over %v failures are counted", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := managertest.Series(t, metrics)[failed]; got != 1 {
			t.Errorf("%v failures are counted, want 1", got)
		}
	})
}
