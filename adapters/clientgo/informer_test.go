// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var (
	pods  = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
	nodes = object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}
)

// world is a server in memory.
type world struct {
	*fakeapi.Server
	pods  *fakeapi.Resource
	nodes *fakeapi.Resource
}

// inWorld runs a test. The bubble fails if a goroutine is left when it ends.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		test(t, &world{server, server.Serve(pods), server.Serve(nodes)})
	})
}

func (w *world) clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
	for _, c := range change {
		c(p)
	}
	return p
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func in(namespace string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Namespace = namespace } }

func labeled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{key: value} }
}

// put stores Pods at the server.
func (w *world) put(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		if err := w.pods.Put(p); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
}

// podInformer is an informer of all Pods.
func (w *world) podInformer(t *testing.T, o clientgo.Options) *clientgo.Informer {
	t.Helper()
	return clientgo.NewInformer(w.clientset(t), pods.GroupVersionResource(), &corev1.Pod{}, o)
}

// run runs an informer until the returned function is called.
func run(t *testing.T, informer cache.SharedIndexInformer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	synctest.Wait()
	return func() { cancel(); <-done; synctest.Wait() }
}

// notes is a handler that writes its calls down.
type notes struct {
	mu    sync.Mutex
	calls []string
	each  func(o any) // called by each call; may be nil
}

func (n *notes) add(o any, format string, args ...any) {
	n.mu.Lock()
	n.calls = append(n.calls, fmt.Sprintf(format, args...))
	n.mu.Unlock()
	if n.each != nil {
		n.each(o)
	}
}

func (n *notes) OnAdd(o any, initial bool) {
	text := "add "
	if initial {
		text = "initial "
	}
	n.add(o, "%s", text+o.(*corev1.Pod).Name)
}

func (n *notes) OnUpdate(before, after any) {
	n.add(after, "update %s %s→%s", after.(*corev1.Pod).Name, before.(*corev1.Pod).Spec.NodeName, after.(*corev1.Pod).Spec.NodeName)
}

func (n *notes) OnDelete(o any) {
	if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		n.add(o, "tombstone %s", tombstone.Key)
		return
	}
	n.add(o, "delete %s on %s", o.(*corev1.Pod).Name, o.(*corev1.Pod).Spec.NodeName)
}

// was returns the calls since the last call of was, sorted if they are of a list.
func (n *notes) was() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	calls := n.calls
	n.calls = nil
	return strings.Join(calls, "\n")
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

func names(objects []any) string {
	var all []string
	for _, o := range objects {
		all = append(all, o.(metav1.Object).GetName())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func add(t *testing.T, informer cache.SharedIndexInformer, h cache.ResourceEventHandler) cache.ResourceEventHandlerRegistration {
	t.Helper()
	r, err := informer.AddEventHandler(h)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHandlersGetEachChangeInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a"))
		informer := w.podInformer(t, clientgo.Options{})
		goOn := make(chan struct{})
		early, late := &notes{}, &notes{each: func(any) { <-goOn }}
		r := add(t, informer, early)
		if r.HasSynced() || informer.HasSynced() || informer.LastSyncResourceVersion() != "" {
			t.Error("synced before it runs")
		}
		defer run(t, informer)()
		if !r.HasSynced() || !informer.HasSynced() || informer.LastSyncResourceVersion() != w.ResourceVersion() {
			t.Errorf("not synced, at version %s", informer.LastSyncResourceVersion())
		}
		want(t, "the handler got", early.was(), "initial a")
		w.put(t, pod("b"), pod("b", on("n1")), pod("b", on("n2")))
		w.pods.Remove(object.Key{Namespace: "team-a", Name: "b"})
		synctest.Wait()
		want(t, "the handler got", early.was(), "add b\nupdate b →n1\nupdate b n1→n2\ndelete b on n2")
		r = add(t, informer, late)
		if synctest.Wait(); r.HasSynced() {
			t.Error("a handler has synced that has not returned from its first call")
		}
		if close(goOn); !cache.WaitFor(t.Context(), "", r.HasSyncedChecker()) {
			t.Error("a handler has not synced")
		}
		want(t, "the late handler got", late.was(), "initial a")
		want(t, "the first handler got", early.was(), "")
	})
}

func TestSlowHandlerGetsEachChangeAndDelaysNoOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		informer := w.podInformer(t, clientgo.Options{})
		goOn := make(chan struct{})
		slow, quick := &notes{each: func(any) { <-goOn }}, &notes{}
		add(t, informer, slow)
		add(t, informer, quick)
		defer run(t, informer)()
		w.put(t, pod("a"), pod("a", on("n1")), pod("a", on("n2")))
		const all = "add a\nupdate a →n1\nupdate a n1→n2"
		want(t, "the quick handler got", quick.was(), all)
		close(goOn)
		synctest.Wait()
		want(t, "the slow handler got", slow.was(), all)
	})
}

// A deletion that a list shows has no last state of which the informer could be certain.
func TestDeletionThatWasNotWatchedIsATombstone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a"), pod("b"))
		informer := w.podInformer(t, clientgo.Options{})
		var got notes
		add(t, informer, &got)
		defer run(t, informer)()
		got.was()
		w.Faults.HoldWatches(true)
		w.pods.Remove(object.Key{Namespace: "team-a", Name: "a"})
		w.put(t, pod("c"))
		w.Compact(w.ResourceVersion())
		w.CutConnections()
		w.Faults.HoldWatches(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, "the handler got", sorted(strings.Split(got.was(), "\n")), "add c tombstone team-a/a")
	})
}

func TestResyncsComeToTheHandlersThatAskForThem(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a", on("n")))
		informer := w.podInformer(t, clientgo.Options{ResyncPeriod: 10 * time.Minute})
		never, often, usual, late := &notes{}, &notes{}, &notes{}, &notes{}
		for h, period := range map[*notes]time.Duration{never: 0, often: time.Minute} {
			if _, err := informer.AddEventHandlerWithResyncPeriod(h, period); err != nil {
				t.Fatal(err)
			}
		}
		add(t, informer, usual)
		defer run(t, informer)()
		// After the start, no period is shorter than the shortest before: a minute.
		if _, err := informer.AddEventHandlerWithResyncPeriod(late, time.Second); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, h := range []*notes{never, often, usual, late} {
			want(t, "first", h.was(), "initial a")
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		for h, calls := range map[*notes]string{never: "", often: "update a n→n", usual: "", late: "update a n→n"} {
			want(t, "after a minute", h.was(), calls)
		}
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		want(t, "after ten minutes", usual.was(), "update a n→n")
		want(t, "after ten minutes, without resyncs", never.was(), "")
	})
}

func TestRemovedHandlerIsCalledNoMore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		informer := w.podInformer(t, clientgo.Options{})
		var removed, stays notes
		r := add(t, informer, &removed)
		add(t, informer, &stays)
		defer run(t, informer)()
		w.put(t, pod("a"))
		if err := cache.ShutDownEventHandler(informer, r); err != nil {
			t.Fatal(err)
		}
		if err := informer.RemoveEventHandler(r); err != nil {
			t.Errorf("removing it again: %v", err)
		}
		w.put(t, pod("b"))
		want(t, "the removed handler got", removed.was(), "add a")
		want(t, "the other handler got", stays.was(), "add a\nadd b")
		if err := informer.RemoveEventHandler(nil); err == nil {
			t.Error("removing what is no registration is no error")
		}
	})
}

func TestStoppedInformerTakesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a"))
		informer := w.podInformer(t, clientgo.Options{})
		early := add(t, informer, &notes{})
		run(t, informer)()
		if !informer.IsStopped() {
			t.Error("the informer does not say that it has stopped")
		}
		if _, err := informer.AddEventHandler(&notes{}); err == nil || !strings.Contains(err.Error(), "stopped already") {
			t.Errorf("adding a handler: %v", err)
		}
		if err := informer.AddIndexers(cache.Indexers{"x": nil}); err == nil {
			t.Error("adding an index is no error")
		}
		if err := informer.RemoveEventHandler(early); err != nil {
			t.Error(err)
		}
		if got := informer.GetStore().ListKeys(); !slices.Equal(got, []string{"team-a/a"}) {
			t.Errorf("the store of a stopped informer has %v", got)
		}
		informer.RunWithContext(t.Context()) // returns at once
	})
}

// The informer stops at the moment at which it syncs, or a moment before.
func TestInformerThatHasSyncedStaysSynced(t *testing.T) {
	for range 100 {
		inWorld(t, func(t *testing.T, w *world) {
			w.put(t, pod("a"))
			informer := w.podInformer(t, clientgo.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			add(t, informer, &notes{each: func(any) { cancel() }})
			informer.RunWithContext(ctx)
			if status, _ := informer.Status(); status.Synced && !informer.HasSynced() {
				t.Error("the informer has listed its objects, and has not synced")
			}
		})
	}
}

func TestFailuresOfWatchesAreReported(t *testing.T) {
	var reflector *cache.Reflector
	inWorld(t, func(t *testing.T, w *world) {
		w.Faults.RefuseNext(2, "watch", fakeapi.Forbidden("pods"))
		informer := w.podInformer(t, clientgo.Options{})
		var failures []error
		if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) {
			failures, reflector = append(failures, err), r
		}); err != nil {
			t.Fatal(err)
		}
		defer run(t, informer)()
		if !cache.WaitFor(t.Context(), "", informer.HasSyncedChecker()) {
			t.Fatal("it has not synced")
		}
		if len(failures) != 2 || !strings.Contains(failures[0].Error(), "forbidden") {
			t.Errorf("the failures are %v", failures)
		}
		if informer.SetWatchErrorHandler(nil) == nil || informer.SetTransform(nil) == nil {
			t.Error("a running informer takes another function")
		}
	})
	// The handler of client-go logs the name of the Reflector, at a pace that it measures with the
	// clock of the machine.
	cache.DefaultWatchErrorHandler(t.Context(), reflector, errors.New("a test"))
}

func TestTransformChangesWhatIsStored(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a", on("n")), pod("bad"), pod("other"))
		informer := w.podInformer(t, clientgo.Options{})
		if err := informer.SetTransform(func(o any) (any, error) {
			p := o.(*corev1.Pod)
			switch p.Name {
			case "bad":
				return nil, errors.New("cannot use it")
			case "other":
				return &corev1.Node{}, nil
			}
			p.Spec.NodeName += "!"
			return p, nil
		}); err != nil {
			t.Fatal(err)
		}
		defer run(t, informer)()
		want(t, "the store has", names(informer.GetStore().List()), "a")
		o, exists, err := informer.GetStore().GetByKey("team-a/a")
		if err != nil || !exists || o.(*corev1.Pod).Spec.NodeName != "n!" {
			t.Errorf("have %v %v %v", o, exists, err)
		}
		status, ok := informer.Status()
		if !ok || status.Faulty != 2 {
			t.Errorf("the status is %+v", status)
		}
	})
}

func TestRequestsHaveTheUserAgentOfTheClientset(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		config := w.Config()
		config.UserAgent = "my-operator/v1"
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		run(t, clientgo.NewInformer(c, pods.GroupVersionResource(), &corev1.Pod{}, clientgo.Options{}))()
		if len(w.Requests()) == 0 {
			t.Error("no requests")
		}
		for _, r := range w.Requests() {
			want(t, "the user agent of "+r.String(), r.HTTP.UserAgent(), "my-operator/v1")
		}
	})
}

func TestFakeClientsetIsAnErrorAndNoPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		informer := clientgo.NewInformer(noConnection{}, pods.GroupVersionResource(), &corev1.Pod{}, clientgo.Options{})
		var failure error
		if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failure = err }); err != nil {
			t.Fatal(err)
		}
		stop := run(t, informer)
		if failure == nil || !strings.Contains(failure.Error(), "no connection") {
			t.Errorf("the failure is %v", failure)
		}
		stop()
	})
}

// noConnection is a clientset as the fakes for unit tests are.
type noConnection struct{}

func (noConnection) Discovery() clientgo.Connection { return noConnection{} }

func (noConnection) RESTClient() rest.Interface { return nil }
