// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/lease"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var (
	leases = object.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true}
	locked = lease.Config{Key: object.Key{Namespace: "kube-system", Name: "test"}, Timing: lease.DefaultTiming}
)

// traffic is what a server without a network sees of one process.
type traffic struct {
	next http.RoundTripper
	cut  atomic.Bool
	deaf atomic.Bool // the server makes no lease

	mu     sync.Mutex
	writes []string // method and path, but for those of leases
}

func (w *traffic) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.cut.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if w.deaf.Load() && r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/leases") {
		return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") {
		w.mu.Lock()
		w.writes = append(w.writes, r.Method+" "+r.URL.Path)
		w.mu.Unlock()
	}
	return w.next.RoundTrip(r)
}

func (w *traffic) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.writes)
}

// replica is a manager of a controller that writes to each Pod that there is, every second.
type replica struct {
	*manager.Manager
	traffic *traffic
	runs    atomic.Int64
	saw     atomic.Pointer[string] // who wrote last, as of the first run
	readers atomic.Int64           // runs of a loop that reads the Pods
	stop    context.CancelFunc
	ended   chan error
	stopped chan struct{}
}

func startReplica(t *testing.T, server http.RoundTripper, name string) *replica {
	t.Helper()
	r := &replica{traffic: &traffic{next: server}, ended: make(chan error, 1), stopped: make(chan struct{})}
	var err error
	r.Manager, err = manager.New(&rest.Config{Host: "http://in-memory", Transport: r.traffic},
		manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))), manager.Instance(name), manager.LeaderElection(locked))
	if err != nil {
		t.Fatal(err)
	}
	pods := cache.Informer[*corev1.Pod](r.Manager)
	reconcile := func(ctx context.Context, req controller.Request) (controller.Result, error) {
		pod, err := pods.Get(req.Key)
		if err != nil {
			return controller.Result{}, err
		}
		if r.runs.Add(1) == 1 {
			run := pod.Labels["run"]
			r.saw.Store(&run)
		}
		patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"by": name, "run": fmt.Sprint(r.runs.Load())}}})
		if err != nil {
			return controller.Result{}, err
		}
		_, err = client.For[*corev1.Pod](r.Client()).Patch(ctx, req.Key, patch)
		return controller.Result{}, err
	}
	writer := controller.New("writer", reconcile, controller.Reads(pods))
	writer.Periodically(time.Second, object.Key{Namespace: "ns", Name: "a"})
	reader := controller.New("reader", func(context.Context, controller.Request) (controller.Result, error) {
		r.readers.Add(1)
		return controller.Result{}, nil
	}, controller.For(pods))
	if err := errors.Join(r.Add(writer), r.Add(reader)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		r.ended <- r.Run(ctx)
		close(r.stopped)
	}()
	t.Cleanup(func() {
		stop()
		if r.ended != nil {
			_ = r.end(t)
		}
	})
	return r
}

func (r *replica) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		r.ended = nil
		return err
	case <-time.After(time.Minute):
		t.Fatal("the manager does not end")
		return nil
	}
}

func podServer(t *testing.T) *fakeapi.Server {
	t.Helper()
	server := fakeapi.New(leases)
	pods := server.Serve(podsResource)
	if err := pods.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	return server
}

func TestAStandbyKnowsTheWorldAndWritesNothingUntilTheLeaderHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer(t)
		first := startReplica(t, server, "first")
		time.Sleep(time.Second)
		second := startReplica(t, server, "second")
		time.Sleep(time.Minute)
		if n := second.InformerFactory().Status()[0].Objects; n != 1 {
			t.Errorf("the standby knows %d objects", n)
		}
		if first.traffic.count() < 50 || second.traffic.count() != 0 || second.runs.Load() != 0 {
			t.Errorf("%d writes of the leader, %d of the standby", first.traffic.count(), second.traffic.count())
		}
		_, err := client.For[*corev1.Pod](second.Client()).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}})
		if refused, ok := errors.AsType[*client.NotSentError](err); !ok || client.Unanswered(err) || !strings.Contains(err.Error(), "does not hold the lease") {
			t.Errorf("a write of a standby: %v (%v)", err, refused)
		}

		select {
		case <-first.Elected():
		default:
			t.Error("the leader does not say that it was elected")
		}
		select {
		case <-second.Elected():
			t.Error("the standby says that it was elected")
		default:
		}
		if loop := second.Overview().Loops[1]; loop.Kept != 1 || second.readers.Load() != 0 {
			t.Errorf("the loop %s of the standby keeps %d keys, and ran %d times; want 1 key and no run", loop.Name, loop.Kept, second.readers.Load())
		}

		first.stop()
		if err := first.end(t); err != nil {
			t.Error(err)
		}
		before := first.traffic.count()
		synctest.Wait() // no time passes
		if second.runs.Load() == 0 || second.readers.Load() == 0 || second.Overview().Loops[1].Kept != 0 {
			t.Error("the standby does not work yet")
		}
		time.Sleep(time.Minute)
		if first.traffic.count() != before || second.traffic.count() < 50 {
			t.Errorf("%d more writes of the old leader, %d of the new one", first.traffic.count()-before, second.traffic.count())
		}
	})
}

func TestALeaderThatIsCutOffEndsWithAnErrorBeforeAnotherWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer(t)
		first := startReplica(t, server, "first")
		time.Sleep(time.Second)
		second := startReplica(t, server, "second")
		time.Sleep(time.Minute)
		first.traffic.cut.Store(true)
		err := first.end(t)
		if !errors.Is(err, lease.ErrExpired) {
			t.Errorf("it ended with %v", err)
		}
		if second.traffic.count() != 0 {
			t.Error("the other one wrote before the end of the first")
		}
		first.traffic.cut.Store(false)
		before := first.traffic.count()
		time.Sleep(time.Minute)
		if second.traffic.count() == 0 || first.traffic.count() != before {
			t.Errorf("the new leader made %d writes, the old one %d more", second.traffic.count(), first.traffic.count()-before)
		}
	})
}

// A write that hangs must not arrive in another's time.
func TestAWriteUnderWayEndsWithTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New(podsResource)
		server.Serve(leases)
		hangs := &hanging{next: server}
		m, err := manager.New(&rest.Config{Host: "http://in-memory", Transport: hangs},
			manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))), manager.Instance("a"), manager.LeaderElection(locked))
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan error, 1)
		if err := m.Add(part{"writer", func(ctx context.Context) error {
			_, err := client.For[*corev1.Pod](m.Client()).Create(context.WithoutCancel(ctx), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
			result <- err
			<-ctx.Done()
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- m.Run(context.WithoutCancel(t.Context())) }()
		time.Sleep(time.Minute) // as long as the lease is renewed, it may hang
		select {
		case err := <-result:
			t.Fatalf("it was ended too early: %v", err)
		default:
		}
		hangs.all.Store(true)
		if err := <-result; err == nil || !client.Unanswered(err) {
			t.Errorf("the write: %v", err)
		}
		if err := <-ended; !errors.Is(err, lease.ErrExpired) {
			t.Error(err)
		}
	})
}

// hanging never answers writes of Pods, and then nothing at all.
type hanging struct {
	next http.RoundTripper
	all  atomic.Bool
}

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.all.Load() || r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/pods") {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return h.next.RoundTrip(r)
}

func TestAReconcileThatNeverReturnsIsNamedAndLeftBehindAndTheLeaseReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer(t)
		var log lockedBuffer
		m, err := manager.New(&rest.Config{Host: "http://in-memory", Transport: server},
			manager.Log(slog.New(slog.NewTextHandler(&log, nil))), manager.Instance("a"), manager.LeaderElection(locked))
		if err != nil {
			t.Fatal(err)
		}
		pods := cache.Informer[*corev1.Pod](m)
		release, begun := make(chan struct{}), make(chan struct{})
		if err := m.Add(controller.New("stuck", func(context.Context, controller.Request) (controller.Result, error) {
			close(begun)
			<-release // whatever becomes of the context
			return controller.Result{}, nil
		}, controller.For(pods))); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		<-begun
		next := startReplica(t, server, "next")
		time.Sleep(time.Minute)
		stop()
		asked := time.Now()
		err = <-ended
		if took := time.Since(asked); took > 16*time.Second {
			t.Errorf("it took %s", took)
		}
		if err == nil || !strings.Contains(err.Error(), "stuck (working on ns/a for 1m") {
			t.Errorf("it ended with %v", err)
		}
		if text := log.String(); !strings.Contains(text, "stopping takes long") || !strings.Contains(text, "stuck (working on ns/a") {
			t.Errorf("nothing was said before:\n%s", text)
		}
		synctest.Wait()
		if next.runs.Load() == 0 {
			t.Error("the lease was not released")
		}
		if _, err := client.For[*corev1.Pod](m.Client()).Create(t.Context(), &corev1.Pod{}); err == nil || client.Unanswered(err) {
			t.Errorf("what was left behind may write: %v", err)
		}
		close(release)
	})
}

func TestNothingIsWrittenWhileItIsNotCertainWhoHoldsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer(t)
		leader := startReplica(t, server, "leader")
		time.Sleep(time.Minute + time.Second/2)
		leader.traffic.deaf.Store(true)
		c, err := client.New(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		if err := client.ForResource[*metav1.PartialObjectMetadata](c, leases).Delete(t.Context(), locked.Key); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		before := leader.traffic.count()
		time.Sleep(2 * time.Second) // its time is not over
		if n := leader.traffic.count() - before; n != 0 {
			t.Errorf("%d writes without a lease", n)
		}
		_, err = client.For[*corev1.Pod](leader.Client()).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}})
		if err == nil || !strings.Contains(err.Error(), "not sent: the lease was deleted") {
			t.Errorf("a write meanwhile: %v", err)
		}
		leader.traffic.deaf.Store(false)
		time.Sleep(time.Minute)
		if n := leader.traffic.count() - before; n < 50 {
			t.Errorf("%d writes in the minute after", n)
		}
	})
}

// What comes before a request is sent may take time: getting a token, for instance.
func TestTheLastQuestionBeforeAWriteIsWhetherTheLeaseIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer(t)
		leader := startReplica(t, server, "leader")
		time.Sleep(time.Second)
		config := &rest.Config{Host: "http://in-memory", Transport: leader.traffic}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				leader.stop()
				<-leader.stopped
				return next.RoundTrip(r)
			})
		})
		host, err := leader.As(config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.For[*corev1.Pod](host.Client()).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}})
		if _, ok := errors.AsType[*client.NotSentError](err); !ok {
			t.Errorf("a write that was begun while the lease was held: %v", err)
		}
	})
}

// Upstream without its feature gate leaves the lease as it is.
func TestALeaseThatIsKeptIsLeftToExpire(t *testing.T) {
	for keep, holder := range map[bool]bool{false: false, true: true} {
		synctest.Test(t, func(t *testing.T) {
			server := fakeapi.New(podsResource)
			held := server.Serve(leases)
			options := []manager.Option{manager.Log(slog.New(slog.DiscardHandler)), manager.Instance("a"), manager.LeaderElection(locked)}
			if keep {
				options = append(options, manager.KeepLease())
			}
			network := roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Context().Err() != nil {
					return nil, r.Context().Err() // as one that has wires
				}
				return server.RoundTrip(r)
			})
			m, err := manager.New(&rest.Config{Host: "http://in-memory", Transport: network}, options...)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- m.Run(ctx) }()
			time.Sleep(time.Second)
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			lease := held.Get(locked.Key)
			if lease == nil {
				t.Fatal("there is no lease")
			}
			spec, _ := lease.Object["spec"].(map[string]any)
			if who, _ := spec["holderIdentity"].(string); (who != "") != holder {
				t.Errorf("kept %t: its holder is %q", keep, who)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The next leader begins within milliseconds, when its watches may not have told it yet
// what the last one did.
func TestANewLeaderWaitsUntilItHasSeenTheLastWritesOfTheOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer(t)
		pods := server.Of(podsResource)
		first := startReplica(t, server, "first")
		time.Sleep(time.Second)
		second := startReplica(t, server, "second")
		time.Sleep(time.Minute + 500*time.Millisecond) // between two writes, each of which both are told of
		pods.HoldWatches(true)
		time.Sleep(time.Second) // in which it writes, and no write is under way at the end
		first.stop()
		if err := first.end(t); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if second.runs.Load() != 0 {
			t.Error("the new leader works, and has not seen the last write of the old one")
		}
		time.Sleep(100 * time.Millisecond)
		pods.HoldWatches(false)
		synctest.Wait()
		if want := fmt.Sprint(first.runs.Load()); second.runs.Load() == 0 || *second.saw.Load() != want {
			t.Errorf("after %d runs it knows run %q of the old leader, and not %q", second.runs.Load(), *second.saw.Load(), want)
		}
	})
}

func TestAManagerThatIsAskedToStopWhileItStandsByDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer(t)
		startReplica(t, server, "first")
		time.Sleep(time.Second)
		second := startReplica(t, server, "second")
		time.Sleep(time.Minute)
		second.stop()
		asked := time.Now()
		if err := second.end(t); err != nil || time.Since(asked) > 0 {
			t.Errorf("it ended after %s with %v", time.Since(asked), err)
		}
	})
}
