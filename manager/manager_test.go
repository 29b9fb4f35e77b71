// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var podsResource = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}

// deadline is how long a test waits for what must come.
const deadline = 30 * time.Second

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func waitFor(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func newManager(t *testing.T, config *rest.Config, log *lockedBuffer) *manager.Manager {
	t.Helper()
	m, err := manager.New(config, manager.Log(slog.New(slog.NewTextHandler(log, nil))), manager.Instance("test"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs a manager and returns how to stop it and get its error.
func run(t *testing.T, m *manager.Manager) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(deadline):
			t.Error("the manager does not stop")
			return nil
		}
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// part is a Runnable made of a function.
type part struct {
	name string
	run  func(context.Context) error
}

func (p part) Name() string                  { return p.name }
func (p part) Run(ctx context.Context) error { return p.run(ctx) }

func TestManagerRunsItsControllersAndLeavesNothingBehind(t *testing.T) {
	server := fakeapi.New().Listen().Serve(podsResource)
	defer server.Close()
	if err := server.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	var log lockedBuffer
	m := newManager(t, server.Config(), &log)
	pods := cache.Informer[*corev1.Pod](m)
	reconciled := make(chan object.Key, 10)
	err := m.Add(controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
		reconciled <- req.Key
		return controller.Result{}, nil
	}, controller.For(pods)))
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, m)
	if key := <-reconciled; key.Name != "a" {
		t.Errorf("reconciled %s", key)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	server.CutConnections() // idle ones of the transport, shared by the process
	waitFor(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before+2 })
}

func TestServerThatIsNotThereIsWaitedForAndSaidOnce(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	m := newManager(t, &rest.Config{Host: "http://" + address}, &log)
	started := make(chan struct{})
	if err := m.Add(part{"test", func(ctx context.Context) error { close(started); <-ctx.Done(); return nil }}); err != nil {
		t.Fatal(err)
	}
	stop := run(t, m)
	waitFor(t, "the message", func() bool { return strings.Contains(log.String(), "cannot be reached") })
	select {
	case <-started:
		t.Error("a part was started without a server")
	default:
	}

	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("the port was taken by another process meanwhile: %v", err)
	}
	server := &http.Server{ReadHeaderTimeout: deadline, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })}
	go func() { _ = server.Serve(again) }()
	defer server.Close()
	select {
	case <-started:
	case <-time.After(deadline):
		t.Error("the server came, the part was not started")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "cannot be reached"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
}

func TestControllerThatCannotStartHoldsUpNobody(t *testing.T) {
	server := fakeapi.New().Listen().Serve(podsResource)
	t.Cleanup(server.Close)
	var allowed atomic.Bool
	server.Before(func(q *fakeapi.Request) *metav1.Status {
		if q.HTTP.URL.Query().Get("labelSelector") == "secret=yes" && !allowed.Load() {
			return fakeapi.Forbidden(q.Verb + " pods")
		}
		return nil
	})
	for i := range 3 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("p", i), Labels: map[string]string{"secret": "yes"}}}
		if err := server.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	var log lockedBuffer
	m := newManager(t, server.Config(), &log)
	open := cache.Informer[*corev1.Pod](m)
	closed := cache.Informer[*corev1.Pod](m, cache.WithLabels("secret=yes"))
	var runs, blocked atomic.Int64
	count := func(n *atomic.Int64) controller.Reconciler {
		return func(context.Context, controller.Request) (controller.Result, error) {
			n.Add(1)
			return controller.Result{}, nil
		}
	}
	if err := errors.Join(
		m.Add(controller.New("open", count(&runs), controller.For(open))),
		m.Add(controller.New("closed", count(&blocked), controller.For(closed))),
	); err != nil {
		t.Fatal(err)
	}
	run(t, m)
	waitFor(t, "the controller with rights to run", func() bool { return runs.Load() == 3 })
	waitFor(t, "the missing right to be said", func() bool { return strings.Contains(log.String(), "reason=forbidden") })
	if blocked.Load() != 0 {
		t.Error("the controller without rights ran")
	}
	allowed.Store(true)
	waitFor(t, "the other controller to run once it may", func() bool { return blocked.Load() == 3 })
	if n := strings.Count(log.String(), "reason=forbidden"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
}

func TestPartThatFailsForGoodStopsTheManager(t *testing.T) {
	server := fakeapi.New().Listen().Serve(podsResource)
	defer server.Close()
	var log lockedBuffer
	m := newManager(t, server.Config(), &log)
	broken := errors.New("broken")
	var stopped atomic.Bool
	if err := errors.Join(
		m.Add(part{"bad", func(context.Context) error { return broken }}),
		m.Add(part{"good", func(ctx context.Context) error { <-ctx.Done(); stopped.Store(true); return nil }}),
	); err != nil {
		t.Fatal(err)
	}
	err := m.Run(t.Context())
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "bad: ") || !stopped.Load() {
		t.Errorf("err = %v, the other part stopped: %v", err, stopped.Load())
	}
}

func TestManagerRefusesTwoPartsOfOneNameAndLateOnes(t *testing.T) {
	server := fakeapi.New().Listen().Serve(podsResource)
	t.Cleanup(server.Close)
	var log lockedBuffer
	m := newManager(t, server.Config(), &log)
	started := make(chan struct{})
	a := part{"a", func(ctx context.Context) error { close(started); <-ctx.Done(); return nil }}
	if err := m.Add(a); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(a); err == nil {
		t.Error("a second part of the name was taken")
	}
	run(t, m)
	<-started
	if err := m.Add(part{"b", nil}); err == nil {
		t.Error("a part was taken while the manager runs")
	}
	if err := m.Run(t.Context()); err == nil {
		t.Error("a second run was not refused")
	}
}

// Events name the controller that acted; its own account writes them.
func TestAControllerWithItsOwnCredentialsRecordsItsEventsWithThem(t *testing.T) {
	server := fakeapi.New().Listen().Serve(podsResource)
	t.Cleanup(server.Close)
	m := newManager(t, server.Config(), &lockedBuffer{})
	wrote := make(chan string, 10)
	watched := func(who string) *rest.Config {
		config := rest.CopyConfig(server.Config())
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events") {
					wrote <- who
				}
				return next.RoundTrip(r)
			})
		})
		return config
	}
	for _, who := range []string{"a-controller", "b-controller"} {
		host, err := m.As(watched(who))
		if err != nil {
			t.Fatal(err)
		}
		recorder := host.Recorder(who)
		pods := cache.Informer[*corev1.Pod](host)
		if err := m.Add(controller.New(who, func(context.Context, controller.Request) (controller.Result, error) {
			recorder.Normal(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}, "Seen", "Look", "it is there")
			return controller.Result{}, nil
		}, controller.For(pods))); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	stop := run(t, m)
	seen := map[string]bool{}
	for len(seen) < 2 {
		select {
		case who := <-wrote:
			seen[who] = true
		case <-time.After(deadline):
			t.Fatalf("of two controllers wrote with their own credentials: %v", seen)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
