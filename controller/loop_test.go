// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var podsResource = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}

// deadline is how long a test waits for what must come. It is never the time that
// something takes.
const deadline = 30 * time.Second

// fixture is a server, a client and the informers of a test.
type fixture struct {
	t       *testing.T
	server  *fakeapi.Resource
	client  *client.Client
	factory *cache.Factory
	pods    cache.SharedInformer[*corev1.Pod]
}

func newFixture(t *testing.T, configure ...func(*fakeapi.Resource)) *fixture {
	t.Helper()
	server := fakeapi.New().Listen().Serve(podsResource)
	for _, f := range configure {
		f(server)
	}
	c, err := client.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	factory := cache.NewFactory(c, nil)
	f := &fixture{t: t, server: server, client: c, factory: factory, pods: cache.Informer[*corev1.Pod](factory)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = factory.Run(ctx) }()
	t.Cleanup(func() { cancel(); server.Close(); <-done })
	return f
}

// run runs a controller until the test ends.
func (f *fixture) run(c *controller.Controller) (stop func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				f.t.Errorf("controller: %v", err)
			}
		case <-time.After(deadline):
			f.t.Error("the controller does not stop")
		}
	})
	f.t.Cleanup(stop)
	return stop
}

func (f *fixture) add(name string, change ...func(*corev1.Pod)) {
	f.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, c := range change {
		c(p)
	}
	if err := f.server.Add(p); err != nil {
		f.t.Fatal(err)
	}
}

// receive takes one value, or fails the test.
func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(deadline):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

func quiet() controller.Option { return controller.Log(slog.New(slog.DiscardHandler)) }

func key(name string) object.Key { return object.Key{Namespace: "ns", Name: name} }

func TestObjectsAreReconciledWithTheirCauses(t *testing.T) {
	f := newFixture(t)
	f.add("a")
	requests := make(chan string, 10)
	f.run(controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
		requests <- req.Key.String() + " because " + req.Causes.String()
		return controller.Result{}, nil
	}, controller.For(f.pods), quiet()))
	if got := receive(t, requests, "the first run"); got != "ns/a because pods: Added Pod ns/a at 2" {
		t.Errorf("run for %q", got)
	}
}

func TestOwnerIsReconciledWhenWhatItManagesChanges(t *testing.T) {
	f := newFixture(t)
	keys := make(chan object.Key, 10)
	f.run(controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
		keys <- req.Key
		return controller.Result{}, nil
	}, controller.For(f.pods), controller.Owns(f.pods), quiet()))
	yes := true
	f.add("child", func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "parent", UID: "u", Controller: &yes}}
	})
	got := map[object.Key]bool{receive(t, keys, "a run"): true}
	got[receive(t, keys, "a second run")] = true
	if !got[key("child")] || !got[key("parent")] {
		t.Errorf("runs for %v", got)
	}
}

// The heart of the loop: a controller that makes three children makes three, and
// never four, though its informer lags behind every write.
func TestRunSeesWhatTheRunBeforeWrote(t *testing.T) {
	f := newFixture(t)
	f.add("parent")
	children := client.For[*corev1.Pod](f.client)
	reconciled := make(chan int, 1000)
	var c *controller.Controller
	c = controller.New("test", func(ctx context.Context, req controller.Request) (controller.Result, error) {
		if req.Key != key("parent") {
			return controller.Result{}, nil
		}
		have := f.pods.Snapshot().Len() - 1
		reconciled <- have
		if have < 3 {
			// The informer is told nothing of this for a while. More reasons to
			// run come at once.
			f.server.HoldWatches(true)
			if _, err := children.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "child-"}}); err != nil {
				return controller.Result{}, err
			}
			for range 10 {
				c.Queue().Add(req.Key)
			}
		}
		return controller.Result{}, nil
	}, controller.For(f.pods), controller.Workers(4), quiet())
	f.run(c)

	for want := range 4 {
		if have := receive(t, reconciled, "a run"); have != want {
			t.Fatalf("a run saw %d children after %d were made", have, want)
		}
		if want < 3 {
			waitFor(t, "the key to be held back", func() bool { return len(c.Waiting()) == 1 })
			select {
			case have := <-reconciled:
				t.Fatalf("a run began that could see %d children of %d", have, want+1)
			default:
			}
			f.server.HoldWatches(false)
		}
	}
	waitFor(t, "nothing to be held back", func() bool { return len(c.Waiting()) == 0 })
	if n := len(f.server.Keys()); n != 4 {
		t.Errorf("%d objects, want the parent and three children", n)
	}
}

// waitFor asks until something is true. What it waits for has no channel.
func waitFor(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestWriteWhoseAnswerWasLostIsFoundOut(t *testing.T) {
	for _, named := range []bool{false, true} {
		t.Run(fmt.Sprintf("named %v", named), func(t *testing.T) {
			var lost atomic.Bool
			f := newFixture(t, func(s *fakeapi.Resource) {
				s.LoseAnswer(func(q *fakeapi.Request) bool {
					return q.Verb == "create" && lost.CompareAndSwap(false, true)
				})
			})
			f.add("parent")
			children := client.For[*corev1.Pod](f.client)
			seen := make(chan int, 100)
			f.run(controller.New("test", func(ctx context.Context, req controller.Request) (controller.Result, error) {
				if req.Key != key("parent") {
					return controller.Result{}, nil
				}
				have := f.pods.Snapshot().Len() - 1
				seen <- have
				if have > 0 {
					return controller.Result{}, nil
				}
				f.server.HoldWatches(true)
				time.AfterFunc(50*time.Millisecond, func() { f.server.HoldWatches(false) })
				child := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "child-"}}
				if named {
					child.Name = "child"
				}
				_, err := children.Create(ctx, child)
				return controller.Result{}, err
			}, controller.For(f.pods), quiet()))
			if have := receive(t, seen, "the first run"); have != 0 {
				t.Fatalf("the first run saw %d", have)
			}
			if have := receive(t, seen, "the second run"); have != 1 {
				t.Errorf("after a create whose answer was lost the next run saw %d children", have)
			}
			if n := len(f.server.Keys()); n != 2 {
				t.Errorf("%d objects, want the parent and one child", n)
			}
		})
	}
}

func TestRunSeesItsOwnDeletes(t *testing.T) {
	f := newFixture(t)
	f.add("parent")
	f.add("victim")
	waitFor(t, "the informer to see the victim", func() bool { return f.pods.Snapshot().Get(key("victim")).Exists() })
	seen := make(chan bool, 100)
	var c *controller.Controller
	c = controller.New("test", func(ctx context.Context, req controller.Request) (controller.Result, error) {
		if req.Key != key("parent") {
			return controller.Result{}, nil
		}
		item := f.pods.Snapshot().Get(key("victim"))
		seen <- item.Exists()
		if !item.Exists() {
			return controller.Result{}, nil
		}
		f.server.HoldWatches(true)
		c.Queue().Add(req.Key)
		return controller.Result{}, client.For[*corev1.Pod](f.client).Delete(ctx, key("victim"), client.IfUID(item.Meta().UID))
	}, controller.For(f.pods), quiet())
	f.run(c)
	if !receive(t, seen, "the first run") {
		t.Fatal("the first run did not see the victim")
	}
	waitFor(t, "the key to be held back", func() bool { return len(c.Waiting()) == 1 })
	f.server.HoldWatches(false)
	if receive(t, seen, "the second run") {
		t.Error("the second run saw what the first deleted")
	}
}

func TestFailedRunIsRetriedAndGivenUpAfterTheMost(t *testing.T) {
	f := newFixture(t)
	f.add("bad")
	f.add("good")
	var bad atomic.Int64
	good := make(chan struct{}, 10)
	var log lockedBuffer
	c := controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
		if req.Key == key("good") {
			good <- struct{}{}
			return controller.Result{}, nil
		}
		if int(bad.Add(1)) != req.Attempt+1 {
			t.Errorf("attempt %d in run %d", req.Attempt, bad.Load())
		}
		return controller.Result{}, errors.New("cannot")
	}, controller.For(f.pods), controller.MaxRetries(5), controller.Log(slog.New(slog.NewTextHandler(&log, nil))))
	f.run(c)
	receive(t, good, "the good object")
	waitFor(t, "the bad one to be given up", func() bool { return strings.Contains(log.String(), "too many failures") })
	if n := bad.Load(); n != 6 {
		t.Errorf("%d runs, want one and five retries", n)
	}
	waitFor(t, "its failures to be forgotten", func() bool { return c.Queue().NumRequeues(key("bad")) == 0 })
}

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

func TestTerminalErrorIsNotRetried(t *testing.T) {
	f := newFixture(t)
	f.add("a")
	runs := make(chan struct{}, 10)
	c := controller.New("test", func(context.Context, controller.Request) (controller.Result, error) {
		runs <- struct{}{}
		return controller.Result{}, controller.Terminal(errors.New("never"))
	}, controller.For(f.pods), quiet())
	f.run(c)
	receive(t, runs, "the run")
	waitFor(t, "the queue to be idle", func() bool {
		i := c.Queue().Inspect(10)
		return len(i.Running)+len(i.Ready)+len(i.Delayed) == 0
	})
	if len(runs) != 0 {
		t.Error("it was tried again")
	}
}

func TestPanicIsAnErrorOfThatRun(t *testing.T) {
	f := newFixture(t)
	f.add("a")
	attempts := make(chan int, 10)
	f.run(controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
		attempts <- req.Attempt
		if req.Attempt == 0 {
			panic("oh")
		}
		return controller.Result{}, nil
	}, controller.For(f.pods), quiet()))
	receive(t, attempts, "the run that panics")
	if n := receive(t, attempts, "the run after"); n != 1 {
		t.Errorf("attempt %d after the panic", n)
	}
}

func TestResultAfterRunsAgain(t *testing.T) {
	f := newFixture(t)
	f.add("a")
	runs := make(chan string, 10)
	f.run(controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
		select {
		case runs <- req.Causes.String():
		default: // the test has seen enough, and a run that waits could not be stopped
		}
		return controller.Result{After: time.Millisecond}, nil
	}, controller.For(f.pods), quiet()))
	receive(t, runs, "the first run")
	if got := receive(t, runs, "the second run"); got != "test: Timer" {
		t.Errorf("the second run is because %q", got)
	}
}

// A time that was asked for counts also for a run that fails, if it says so: the back-off grows, and a deadline does not.
func TestATimeThatAlwaysCountsIsKeptWhenTheRunFails(t *testing.T) {
	for _, always := range []bool{false, true} {
		t.Run(fmt.Sprint("always ", always), func(t *testing.T) {
			f := newFixture(t)
			f.add("a")
			causes := make(chan string, 100)
			f.run(controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
				select {
				case causes <- req.Causes.String():
				default: // the test has seen enough
				}
				return controller.Result{After: 30 * time.Millisecond, Always: always}, errors.New("cannot")
			}, controller.For(f.pods), quiet()))
			timers := 0
			for range 8 { // by the back-off they come after 5, 10, 20, 40, 80 ms and so on
				if strings.Contains(receive(t, causes, "the next run"), "Timer") {
					timers++
				}
			}
			if always != (timers > 0) {
				t.Errorf("%d of 8 runs are because of the time", timers)
			}
		})
	}
}

func TestRunUnderWayMayFinishWhenTheControllerStops(t *testing.T) {
	f := newFixture(t)
	f.add("a")
	began, finish := make(chan struct{}), make(chan struct{})
	var finished atomic.Bool
	c := controller.New("test", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
		close(began)
		select {
		case <-finish:
			finished.Store(ctx.Err() == nil)
		case <-ctx.Done():
		}
		return controller.Result{}, nil
	}, controller.For(f.pods), quiet())
	stop := f.run(c)
	receive(t, began, "the run")
	time.AfterFunc(20*time.Millisecond, func() { close(finish) })
	stop()
	if !finished.Load() {
		t.Error("the run was not let finish")
	}
}

func TestRunThatNeverReturnsIsEndedAfterTheGracePeriod(t *testing.T) {
	f := newFixture(t)
	f.add("a")
	began := make(chan struct{})
	c := controller.New("test", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
		close(began)
		<-ctx.Done()
		return controller.Result{}, ctx.Err()
	}, controller.For(f.pods), controller.Grace(10*time.Millisecond), quiet())
	stop := f.run(c)
	receive(t, began, "the run")
	stop()
}

func TestTimeoutEndsARun(t *testing.T) {
	f := newFixture(t)
	f.add("a")
	errs := make(chan error, 100)
	f.run(controller.New("test", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
		<-ctx.Done()
		errs <- ctx.Err()
		return controller.Result{}, nil
	}, controller.For(f.pods), controller.Timeout(time.Millisecond), quiet()))
	if err := receive(t, errs, "the run"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestMissingRightIsSaidOnce(t *testing.T) {
	f := newFixture(t)
	for i := range 20 {
		f.add(fmt.Sprint("p", i))
	}
	var log lockedBuffer
	var runs atomic.Int64
	f.run(controller.New("test", func(context.Context, controller.Request) (controller.Result, error) {
		runs.Add(1)
		return controller.Result{}, &statusError{fakeapi.Forbidden("create pods")}
	}, controller.For(f.pods), controller.Log(slog.New(slog.NewTextHandler(&log, nil)))))
	waitFor(t, "many runs", func() bool { return runs.Load() > 60 })
	if n := strings.Count(log.String(), "lack a right"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
}

func TestRefusalByAdmissionIsNotTakenForAMissingRight(t *testing.T) {
	f := newFixture(t)
	f.add("a")
	var log lockedBuffer
	var runs atomic.Int64
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("exceeded quota: small, used: pods=1, limited: pods=1"))
	f.run(controller.New("test", func(context.Context, controller.Request) (controller.Result, error) {
		runs.Add(1)
		return controller.Result{}, refusal
	}, controller.For(f.pods), controller.Log(slog.New(slog.NewTextHandler(&log, nil)))))
	waitFor(t, "two runs", func() bool { return runs.Load() > 1 })
	if text := log.String(); strings.Contains(text, "lack a right") || !strings.Contains(text, "exceeded quota") {
		t.Errorf("said:\n%s", text)
	}
}

// statusError is an answer of the server as an error.
type statusError struct{ status *metav1.Status }

func (e *statusError) Error() string         { return e.status.Message }
func (e *statusError) Status() metav1.Status { return *e.status }

func TestControllerRunsOnceAndRefusesNonsense(t *testing.T) {
	f := newFixture(t)
	ok := func(context.Context, controller.Request) (controller.Result, error) { return controller.Result{}, nil }
	c := controller.New("test", ok, controller.For(f.pods), quiet())
	stop := f.run(c)
	stop()
	for name, c := range map[string]*controller.Controller{
		"a second run":  c,
		"no workers":    controller.New("test", ok, controller.For(f.pods), controller.Workers(0), quiet()),
		"no reconciler": controller.New("test", nil, controller.For(f.pods), quiet()),
	} {
		if err := c.Run(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestWriteThatTheInformerDoesNotSelectIsNotWaitedForForEver(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("answer lost %v", lost), func(t *testing.T) {
			var creates atomic.Int64
			f := newFixture(t, func(s *fakeapi.Resource) {
				s.LoseAnswer(func(q *fakeapi.Request) bool { return lost && q.Verb == "create" && creates.Add(1) == 1 })
			})
			f.add("parent")
			// Nothing that is written below is of this namespace.
			elsewhere := cache.Informer[*corev1.Pod](f.factory, cache.InNamespace("ns"))
			runs := make(chan struct{}, 100)
			c := controller.New("test", func(ctx context.Context, req controller.Request) (controller.Result, error) {
				runs <- struct{}{}
				if len(runs) > 1 {
					return controller.Result{}, nil
				}
				_, err := client.For[*corev1.Pod](f.client).Create(ctx,
					&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", GenerateName: "child-"}})
				return controller.Result{After: time.Millisecond}, err
			}, controller.For(elsewhere), quiet())
			controller.Impatient(c, 20*time.Millisecond)
			f.run(c)
			waitFor(t, "two runs", func() bool { return len(runs) > 1 })
			waitFor(t, "nothing to be held back", func() bool { return len(c.Waiting()) == 0 })
		})
	}
}
