// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/lease"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
)

// limit is the default of ShutdownTimeout.
const limit = 16 * time.Second

// ending runs a manager and returns what Run returns, and how to stop it.
func ending(t *testing.T, m *manager.Manager) (ended <-chan error, stop context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	result := make(chan error, 1)
	go func() { result <- m.Run(ctx) }()
	return result, stop
}

// within waits for the end of a stop that began at a moment.
func within(t *testing.T, ended <-chan error, began time.Time, most time.Duration) error {
	t.Helper()
	select {
	case err := <-ended:
		if took := time.Since(began); took > most {
			t.Errorf("the stop took %s, want at most %s", took, most)
		}
		return err
	case <-time.After(time.Hour):
		t.Fatal("Run does not return")
		return nil
	}
}

func says(t *testing.T, err error, all ...string) {
	t.Helper()
	for _, want := range all {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run returned %v, want %q in it", err, want)
		}
	}
}

// blocking adds a handler of Pods that does not return until the test ends, under a name.
func blocking(t *testing.T, m *manager.Manager, name string) (begun <-chan struct{}, release func()) {
	t.Helper()
	called, held := make(chan struct{}), make(chan struct{})
	pods := cache.Informer[*corev1.Pod](m)
	if _, err := pods.AddHandler(func(cache.Event[*corev1.Pod]) { close(called); <-held }, cache.HandlerOptions{Name: name}); err != nil {
		t.Fatal(err)
	}
	return called, func() { close(held) }
}

func TestAHandlerThatNeverReturnsIsNamedAndLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		m := newManager(t, podServer(t).Config(), &log)
		begun, release := blocking(t, m, "stuck-handler")
		ended, stop := ending(t, m)
		<-begun
		time.Sleep(time.Minute)
		stop()
		err := within(t, ended, time.Now(), limit)
		says(t, err, "left behind", "informer of pods", "stuck-handler for 1m")
		if text := log.String(); !strings.Contains(text, "stuck-handler") {
			t.Errorf("nothing was logged before:\n%s", text)
		}
		release()
	})
}

// A process that lost its lease must not look alive while it ends: it neither leads nor
// stands by, and somebody else may have to restart it.
func TestLivezFailsWhileAProcessThatLostItsLeaseStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &traffic{next: podServer(t)}
		l := newPipes()
		m, err := manager.New(&rest.Config{Host: "http://in-memory", Transport: network}, manager.Serve(l, serving.Options{Plain: true}),
			manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))), manager.Instance("a"), manager.LeaderElection(locked))
		if err != nil {
			t.Fatal(err)
		}
		begun, release := blocking(t, m, "stuck-handler")
		stopping := make(chan struct{})
		if err := m.Add(part{"slow", func(ctx context.Context) error { <-ctx.Done(); close(stopping); time.Sleep(time.Second); return nil }}); err != nil {
			t.Fatal(err)
		}
		ended, stop := ending(t, m)
		defer stop()
		<-begun
		time.Sleep(time.Minute)
		if code, text := l.get(t, false, "/livez", ""); code != http.StatusOK {
			t.Errorf("/livez of a leader: %d %s", code, text)
		}
		network.cut.Store(true)
		<-stopping
		lost := time.Now()
		for _, path := range []string{"/livez", "/healthz", "/livez/leaderElection"} {
			if code, text := l.get(t, false, path, ""); code != http.StatusInternalServerError {
				t.Errorf("%s of a process that lost its lease: %d %s", path, code, text)
			}
		}
		time.Sleep(5 * time.Second) // the part has ended, the handler has not
		stop()                      // too late to count as the reason
		synctest.Wait()
		if code, text := l.get(t, false, "/livez", ""); code != http.StatusInternalServerError {
			t.Errorf("/livez while only a handler is in the way: %d %s", code, text)
		}
		err = within(t, ended, lost, limit)
		says(t, err, "stuck-handler")
		if !errors.Is(err, lease.ErrExpired) {
			t.Errorf("Run returned %v, want that the lease expired", err)
		}
		release()
	})
}

func TestLivezHoldsWhileTheCallerStopsTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &traffic{next: podServer(t)}
		l := newPipes()
		m, err := manager.New(&rest.Config{Host: "http://in-memory", Transport: network}, manager.Serve(l, serving.Options{Plain: true}),
			manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))), manager.Instance("a"), manager.LeaderElection(locked))
		if err != nil {
			t.Fatal(err)
		}
		begun := make(chan struct{})
		if err := m.Add(part{"slow", func(ctx context.Context) error { close(begun); <-ctx.Done(); time.Sleep(8 * time.Second); return nil }}); err != nil {
			t.Fatal(err)
		}
		ended, stop := ending(t, m)
		<-begun
		stop()
		asked := time.Now()
		synctest.Wait()
		if code, text := l.get(t, false, "/livez", ""); code != http.StatusOK {
			t.Errorf("/livez: %d %s", code, text)
		}
		if code, _ := l.get(t, false, "/readyz", ""); code != http.StatusInternalServerError {
			t.Errorf("/readyz: %d", code)
		}
		network.cut.Store(true) // the lease expires meanwhile: the caller's stop came first
		time.Sleep(7 * time.Second)
		if code, text := l.get(t, false, "/livez", ""); code != http.StatusOK {
			t.Errorf("/livez when the lease expires during the caller's stop: %d %s", code, text)
		}
		if err := within(t, ended, asked, limit); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

// ignoring is a transport that does not end requests with their contexts: one that waits for
// a credential plugin, for instance.
type ignoring struct {
	next    http.RoundTripper
	matches func(*http.Request) bool
	on      atomic.Bool
	hangs   chan struct{} // has an element for each request that hangs
	release chan struct{}
}

func (i *ignoring) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.on.Load() && i.matches(r) {
		i.hangs <- struct{}{}
		<-i.release
		return nil, errors.New("released")
	}
	return i.next.RoundTrip(r)
}

// Each step of a run may hang in a request whose context has ended.
func TestAStopIsBoundedAndNamedWhereverTheManagerIs(t *testing.T) {
	for name, test := range map[string]struct {
		matches func(*http.Request) bool
		elects  bool
		late    bool // it hangs from the stop on, not from the start
		says    string
	}{
		"waiting for the server": {matches: func(r *http.Request) bool { return r.URL.Path == "/version" }, says: "waiting for the server"},
		"standing by":            {matches: func(r *http.Request) bool { return isLease(r) }, elects: true, says: "standing by for the lease"},
		"reading":                {matches: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/pods") }, says: "informer of pods"},
		"releasing the lease":    {matches: func(r *http.Request) bool { return isLease(r) && r.Method == http.MethodPut }, elects: true, late: true, says: "releasing the lease"},
		"writing events":         {matches: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/events") }, says: "writing events of worker"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &ignoring{next: podServer(t), matches: test.matches, hangs: make(chan struct{}, 100), release: make(chan struct{})}
				defer close(network.release)
				network.on.Store(!test.late)
				options := []manager.Option{manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))), manager.Instance("a")}
				if test.elects {
					options = append(options, manager.LeaderElection(locked))
				}
				m, err := manager.New(&rest.Config{Host: "http://in-memory", Transport: network}, options...)
				if err != nil {
					t.Fatal(err)
				}
				recorder := m.Recorder("worker")
				cache.Informer[*corev1.Pod](m)
				if err := m.Add(part{"worker", func(ctx context.Context) error {
					recorder.Normal(&corev1.Pod{}, "Begun", "Begin", "it has begun")
					<-ctx.Done()
					return nil
				}}); err != nil {
					t.Fatal(err)
				}
				ended, stop := ending(t, m)
				time.Sleep(time.Minute + time.Second/2)
				network.on.Store(true)
				if !test.late {
					<-network.hangs
				}
				stop()
				says(t, within(t, ended, time.Now(), limit), "left behind", test.says)
			})
		})
	}
}

func isLease(r *http.Request) bool { return strings.Contains(r.URL.Path, "/leases") }

// A short limit leaves each step its share.
func TestAShortLimitIsKeptToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &ignoring{next: podServer(t), matches: isLease, hangs: make(chan struct{}, 100), release: make(chan struct{})}
		defer close(network.release)
		m, err := manager.New(&rest.Config{Host: "http://in-memory", Transport: network}, manager.ShutdownTimeout(time.Second),
			manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))), manager.Instance("a"), manager.LeaderElection(locked))
		if err != nil {
			t.Fatal(err)
		}
		begun, release := blocking(t, m, "stuck-handler")
		held := make(chan struct{})
		if err := m.Add(part{"stuck-part", func(context.Context) error { <-held; return nil }}); err != nil {
			t.Fatal(err)
		}
		ended, stop := ending(t, m)
		<-begun
		time.Sleep(time.Second / 2)
		network.on.Store(true)
		stop()
		says(t, within(t, ended, time.Now(), time.Second), "stuck-part", "releasing the lease", "stuck-handler")
		if _, err := client.For[*corev1.Pod](m.Client()).Create(t.Context(), &corev1.Pod{}); err == nil || client.Unanswered(err) {
			t.Errorf("a part that was left behind may write: %v", err)
		}
		close(held)
		release()
	})
}

// A lease that is had after the manager gave up waiting for it must not be kept.
func TestALeaseThatComesTooLateIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer(t)
		locks := server.Of(leases)
		held := make(chan struct{})
		network := roundTripper(func(r *http.Request) (*http.Response, error) {
			if isLease(r) && r.Method == http.MethodPost {
				<-held // whatever becomes of its context
				return server.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
			}
			return server.RoundTrip(r)
		})
		m, err := manager.New(&rest.Config{Host: "http://in-memory", Transport: network}, manager.ShutdownTimeout(2*time.Second),
			manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))), manager.Instance("a"), manager.LeaderElection(locked))
		if err != nil {
			t.Fatal(err)
		}
		ended, stop := ending(t, m)
		time.Sleep(time.Second)
		stop()
		says(t, within(t, ended, time.Now(), 2*time.Second), "standing by for the lease")
		close(held)
		time.Sleep(time.Minute)
		found := locks.Get(locked.Key)
		if found == nil {
			t.Fatal("there is no lease")
		}
		spec, _ := found.Object["spec"].(map[string]any)
		if who, _ := spec["holderIdentity"].(string); who != "" {
			t.Errorf("%s holds the lease, and its manager has ended", who)
		}
	})
}
