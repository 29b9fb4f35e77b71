// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/garbagecollector"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// held is a finalizer that nobody but a test takes out.
const held = "example.org/held"

var configMaps = object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}

// scene is a namespace in which objects own one another.
type scene struct {
	*controlplanetest.Cluster
	t         *testing.T
	namespace string
	patience  time.Duration // of the collector, for kinds that it cannot watch
}

// kindsPatience is that of a collector in a test: well below the test's own, so that a kind
// that another test has left in a bad state delays a test and does not fail it.
const kindsPatience = controlplanetest.Patience / 4

func newScene(t *testing.T) *scene {
	t.Helper()
	c := shared.Get(t)
	return &scene{Cluster: c, t: t, namespace: c.Namespace(t), patience: kindsPatience}
}

// collect runs the controller until the test ends, or stop is called. The
// configuration is the cluster's unless another one is given.
func (s *scene) collect(config ...*rest.Config) (stop func()) {
	s.t.Helper()
	mgr, err := manager.New(append(config, s.Config)[0], manager.Log(slog.New(slog.NewTextHandler(s.t.Output(), nil))))
	if err != nil {
		s.t.Fatal(err)
	}
	gc, err := garbagecollector.New(mgr, garbagecollector.Defaults())
	if err != nil {
		s.t.Fatal(err)
	}
	garbagecollector.WaitForKinds(gc, s.patience)
	if err := mgr.Add(gc); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // that of the test ends before its clean-up
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("the manager ended with %v", err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

func (s *scene) metadata(r object.Resource) client.Typed[*metav1.PartialObjectMetadata] {
	return client.ForResource[*metav1.PartialObjectMetadata](s.Client, r)
}

func (s *scene) key(r object.Resource, name string) object.Key {
	if !r.Namespaced {
		return object.Key{Name: name}
	}
	return object.Key{Namespace: s.namespace, Name: name}
}

// made is an object that a test has made.
type made struct {
	object.Resource
	object.Key
	uid types.UID
}

// owns returns a reference to the object; edit may change it.
func (m made) owns(edit ...func(*metav1.OwnerReference)) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: m.APIVersion(), Kind: m.Kind, Name: m.Name, UID: m.uid}
	for _, f := range edit {
		f(&ref)
	}
	return ref
}

func blocking(ref *metav1.OwnerReference) { ref.BlockOwnerDeletion = new(true) }

// make makes an object with owners.
func (s *scene) make(r object.Resource, name string, owners ...metav1.OwnerReference) made {
	s.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(r.GroupVersionKind())
	o.SetName(name)
	if r.Namespaced {
		o.SetNamespace(s.namespace)
	}
	o.SetOwnerReferences(owners)
	o, err := client.ForResource[*unstructured.Unstructured](s.Client, r).Create(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return made{Resource: r, Key: object.KeyOf(o), uid: o.GetUID()}
}

// hold keeps an object from going once it is deleted, until its return value is
// called.
func (s *scene) hold(m made) (release func()) {
	s.t.Helper()
	s.patch(m, map[string]any{"finalizers": []string{held}})
	return func() {
		o, err := s.metadata(m.Resource).Get(s.t.Context(), m.Key)
		if err != nil {
			s.t.Fatal(err)
		}
		left := slices.DeleteFunc(o.Finalizers, func(f string) bool { return f == held })
		s.patch(m, map[string]any{"finalizers": left})
	}
}

func (s *scene) patch(m made, metadata map[string]any) {
	s.t.Helper()
	patch, err := client.MergePatch(map[string]any{"metadata": metadata})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.metadata(m.Resource).Patch(s.t.Context(), m.Key, patch); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) delete(m made, policy metav1.DeletionPropagation) {
	s.t.Helper()
	if err := s.metadata(m.Resource).Delete(s.t.Context(), m.Key, client.IfUID(m.uid), client.Propagation(policy)); err != nil {
		s.t.Fatal(err)
	}
}

// get returns an object, or nil if it is gone.
func (s *scene) get(m made) *metav1.PartialObjectMetadata {
	s.t.Helper()
	o, err := s.metadata(m.Resource).Get(s.t.Context(), m.Key)
	if apierrors.IsNotFound(err) || err == nil && o.UID != m.uid {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// eventually waits until f returns "". What it returns before says what is missing.
func (s *scene) eventually(f func() string) {
	s.t.Helper()
	deadline := time.NewTimer(controlplanetest.Patience)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		missing := f()
		if missing == "" {
			return
		}
		select {
		case <-again.C:
		case <-deadline.C:
			s.t.Fatalf("after %s: %s", controlplanetest.Patience, missing)
		}
	}
}

func (s *scene) goes(all ...made) {
	s.t.Helper()
	for _, m := range all {
		s.eventually(func() string {
			if o := s.get(m); o != nil {
				return fmt.Sprintf("%s %s is there, with owners %v and finalizers %v", m.Kind, m.Key, o.OwnerReferences, o.Finalizers)
			}
			return ""
		})
	}
}

// owners returns the names of an object's owners.
func (s *scene) owners(m made) []string {
	s.t.Helper()
	o := s.get(m)
	if o == nil {
		s.t.Fatalf("%s %s is gone", m.Kind, m.Key)
	}
	names := []string{}
	for _, ref := range o.OwnerReferences {
		names = append(names, ref.Name)
	}
	return names
}

// keeps waits until an object has just these owners.
func (s *scene) keeps(m made, owners ...string) {
	s.t.Helper()
	s.eventually(func() string {
		if have := s.owners(m); !slices.Equal(have, owners) {
			return fmt.Sprintf("%s %s has the owners %v, want %v", m.Kind, m.Key, have, owners)
		}
		return ""
	})
}

// rests waits until what was to be collected before has been: something that is
// garbage from now on has gone.
func (s *scene) rests() {
	s.t.Helper()
	owner := s.make(configMaps, "last-owner")
	last := s.make(configMaps, "last", owner.owns())
	s.delete(owner, metav1.DeletePropagationBackground)
	s.goes(owner, last)
}

func TestDependentsOfADeletedOwnerGoInTheBackground(t *testing.T) {
	s := newScene(t)
	s.collect()
	top := s.make(configMaps, "top")
	middle := s.make(configMaps, "middle", top.owns())
	bottom := s.make(configMaps, "bottom", middle.owns())
	stranger := s.make(configMaps, "stranger")
	s.delete(top, metav1.DeletePropagationBackground)
	s.goes(top, middle, bottom)
	s.keeps(stranger)
}

func TestWhatWasOrphanedBeforeTheStartIsCollected(t *testing.T) {
	s := newScene(t)
	owner := s.make(configMaps, "owner")
	dependent := s.make(configMaps, "dependent", owner.owns())
	never := s.make(configMaps, "never", made{Resource: configMaps, Key: object.Key{Name: "nobody"}, uid: "00000000-0000-0000-0000-000000000000"}.owns())
	s.delete(owner, metav1.DeletePropagationBackground)
	s.collect()
	s.goes(dependent, never)
}

func TestAnOwnerOfAKindThatIsNotWatchedIsAskedForAtTheServer(t *testing.T) {
	s := newScene(t)
	s.collect()
	events := object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}
	e, err := client.For[*eventsv1.Event](s.Client).Create(t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "owner"}, EventTime: metav1.NowMicro(),
		ReportingController: "test", ReportingInstance: "test", Action: "Test", Reason: "Test", Type: corev1.EventTypeNormal,
		Regarding: corev1.ObjectReference{Namespace: s.namespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	owner := made{Resource: events, Key: object.KeyOf(e), uid: e.UID}
	dependent := s.make(configMaps, "dependent", owner.owns())
	s.rests()
	s.keeps(dependent, "owner")
	s.delete(owner, metav1.DeletePropagationBackground)
	s.goes(dependent)
}

func TestAnObjectWithAnotherOwnerStaysAndLosesTheReference(t *testing.T) {
	for _, kind := range []object.Resource{configMaps, things(t)} {
		t.Run(kind.Kind, func(t *testing.T) {
			s := newScene(t)
			s.collect()
			first, second := s.make(kind, "first"), s.make(kind, "second")
			dependent := s.make(kind, "dependent", first.owns(), second.owns())
			s.delete(first, metav1.DeletePropagationBackground)
			s.keeps(dependent, "second")
			s.delete(second, metav1.DeletePropagationBackground)
			s.goes(dependent)
		})
	}
}

func TestForegroundDeletionWaitsForThoseThatBlockAndNoOthers(t *testing.T) {
	s := newScene(t)
	s.collect()
	owner := s.make(configMaps, "owner")
	blocks := s.make(configMaps, "blocks", owner.owns(blocking))
	other := s.make(configMaps, "other", owner.owns())
	releaseBlocks, releaseOther := s.hold(blocks), s.hold(other)
	s.delete(owner, metav1.DeletePropagationForeground)
	deleting := func(m made) func() string {
		return func() string {
			if o := s.get(m); o != nil && o.DeletionTimestamp == nil {
				return m.Name + " is not being deleted"
			}
			return ""
		}
	}
	s.eventually(deleting(blocks))
	s.eventually(deleting(other))
	s.rests()
	if s.get(owner) == nil {
		t.Error("the owner has gone before an object that blocks it")
	}
	releaseBlocks()
	s.goes(blocks, owner)
	if s.get(other) == nil {
		t.Error("the object that does not block has gone, and somebody held it")
	}
	releaseOther()
	s.goes(other)
}

func TestForegroundDeletionGoesDownToTheLastDependent(t *testing.T) {
	s := newScene(t)
	s.collect()
	top := s.make(configMaps, "top")
	middle := s.make(configMaps, "middle", top.owns(blocking))
	bottom := s.make(configMaps, "bottom", middle.owns(blocking))
	release := s.hold(bottom)
	s.delete(top, metav1.DeletePropagationForeground)
	s.eventually(func() string {
		if o := s.get(bottom); o.DeletionTimestamp == nil {
			return "the lowest is not being deleted"
		}
		return ""
	})
	s.rests()
	if s.get(top) == nil || s.get(middle) == nil {
		t.Error("an owner has gone before its dependent")
	}
	release()
	s.goes(bottom, middle, top)
}

func TestAnObjectWithAnotherOwnerDoesNotHoldUpAForegroundDeletion(t *testing.T) {
	s := newScene(t)
	s.collect()
	first, second := s.make(configMaps, "first"), s.make(configMaps, "second")
	dependent := s.make(configMaps, "dependent", first.owns(blocking), second.owns(blocking))
	s.delete(first, metav1.DeletePropagationForeground)
	s.goes(first)
	s.keeps(dependent, "second")
}

func TestOrphansStayAndLoseTheReference(t *testing.T) {
	for _, kind := range []object.Resource{configMaps, things(t)} {
		t.Run(kind.Kind, func(t *testing.T) {
			s := newScene(t)
			s.collect()
			owner, other := s.make(kind, "owner"), s.make(kind, "other")
			var orphans []made
			for i := range 30 {
				orphans = append(orphans, s.make(kind, fmt.Sprintf("orphan-%d", i), owner.owns(blocking)))
			}
			shared := s.make(kind, "shared", owner.owns(), other.owns())
			s.delete(owner, metav1.DeletePropagationOrphan)
			s.goes(owner)
			s.rests()
			for _, orphan := range orphans {
				s.keeps(orphan)
			}
			s.keeps(shared, "other")
		})
	}
}

func TestCirclesOfForegroundDeletionAreBroken(t *testing.T) {
	for name, deleted := range map[string][]int{"one is deleted": {0}, "all are deleted at once": {0, 1, 2}} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.collect()
			var circle []made
			for i := range 3 {
				circle = append(circle, s.make(configMaps, fmt.Sprint("member-", i)))
			}
			for i, m := range circle {
				s.patch(m, map[string]any{"ownerReferences": []metav1.OwnerReference{circle[(i+1)%3].owns(blocking)}})
			}
			for _, i := range deleted {
				s.delete(circle[i], metav1.DeletePropagationForeground)
			}
			s.goes(circle...)
		})
	}
}

func TestAnOwnerInAnotherNamespaceIsReportedAndCountsAsAbsent(t *testing.T) {
	s := newScene(t)
	other := newScene(t)
	s.collect()
	owner := other.make(configMaps, "owner")
	s.rests() // the owner has been seen: only then it is known to be elsewhere
	dependent := s.make(configMaps, "dependent", owner.owns())
	s.goes(dependent)
	other.keeps(owner)
	s.eventually(s.reported(s.namespace, dependent, owner))
}

// reported says what is missing for an event to tell of an owner that is not in the
// namespace.
func (s *scene) reported(namespace string, dependent, owner made) func() string {
	return func() string {
		events, _, err := client.For[*eventsv1.Event](s.Client).List(s.t.Context(), client.Selection{Namespace: namespace})
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, e := range events {
			if e.Regarding.UID != dependent.uid {
				continue
			}
			want := fmt.Sprintf("ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
				owner.APIVersion(), owner.Kind, dependent.Namespace, owner.Name, owner.uid, dependent.Namespace)
			if e.Reason == "OwnerRefInvalidNamespace" && e.Type == corev1.EventTypeWarning && e.Note == want {
				return ""
			}
			all = append(all, e.Reason+": "+e.Note)
		}
		return fmt.Sprintf("no event about the owner of %s: %q", dependent.Key, all)
	}
}

func TestAClusterScopedObjectWithAnOwnerInANamespaceIsReportedAndStays(t *testing.T) {
	s := newScene(t)
	s.collect()
	owner := s.make(configMaps, "owner")
	s.rests()
	rooms := rooms(t)
	dependent := s.make(rooms, "dependent-of-"+s.namespace, owner.owns(blocking))
	s.eventually(s.reported("default", dependent, owner))
	s.delete(owner, metav1.DeletePropagationForeground)
	s.goes(owner)
	s.rests()
	s.keeps(dependent, "owner")
}

func TestAnOwnerOutsideOfNamespacesOwnsInAllOfThem(t *testing.T) {
	s, other := newScene(t), newScene(t)
	s.collect()
	owner := s.make(rooms(t), "owner-"+s.namespace)
	dependents := []made{s.make(configMaps, "a", owner.owns(blocking)), other.make(configMaps, "b", owner.owns(blocking))}
	s.delete(owner, metav1.DeletePropagationForeground)
	s.goes(dependents...)
	s.goes(owner)
}

func TestAReferenceByAnotherVersionIsOneToTheSameObject(t *testing.T) {
	s := newScene(t)
	s.collect()
	owner := s.make(configMaps, "owner")
	old := owner.owns(func(ref *metav1.OwnerReference) { ref.APIVersion = "v1beta3" }) // not served for ages
	dependent := s.make(configMaps, "dependent", old)
	s.rests()
	s.keeps(dependent, "owner")
	s.delete(owner, metav1.DeletePropagationBackground)
	s.goes(dependent)
}

func TestAnObjectThatChangesAllTheTimeIsCollected(t *testing.T) {
	s := newScene(t)
	s.collect()
	owner := s.make(configMaps, "owner")
	dependent := s.make(configMaps, "dependent", owner.owns())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				patch, _ := client.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{fmt.Sprint("turn-", w): fmt.Sprint(i)}}})
				if _, err := s.metadata(configMaps).Patch(ctx, dependent.Key, patch); apierrors.IsNotFound(err) {
					return
				}
			}
		})
	}
	s.delete(owner, metav1.DeletePropagationBackground)
	s.goes(dependent)
	stop()
	writers.Wait()
}

func TestAnObjectThatTookANameIsNotCollected(t *testing.T) {
	s := newScene(t)
	owner := s.make(configMaps, "owner")
	dependent := s.make(configMaps, "dependent", owner.owns())
	s.delete(owner, metav1.DeletePropagationBackground)
	s.delete(dependent, metav1.DeletePropagationBackground)
	s.goes(dependent)
	another := s.make(configMaps, "dependent")
	anotherOwner := s.make(configMaps, "owner")
	late := s.make(configMaps, "late", owner.owns()) // of the one that is gone
	s.collect()
	s.goes(late)
	s.rests()
	s.keeps(another)
	s.keeps(anotherOwner)
}

// counter counts requests that were answered with success, by method and path.
type counter struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *counter) on(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil && response.StatusCode < 300 {
				c.mu.Lock()
				c.count[r.Method+" "+r.URL.Path]++
				c.mu.Unlock()
			}
			return response, err
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// of returns how many requests with the method there were on objects of the
// namespace, and the most of them on one object.
func (c *counter) of(method, namespace string) (sum, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for request, n := range c.count {
		if strings.HasPrefix(request, method+" /api/v1/namespaces/"+namespace+"/configmaps/") {
			sum += n
			most = max(most, n)
		}
	}
	return sum, most
}

func TestACollectedObjectCostsOneRequest(t *testing.T) {
	s := newScene(t)
	const n = 200
	owner := s.make(configMaps, "owner")
	var dependents []made
	for i := range n {
		dependents = append(dependents, s.make(configMaps, fmt.Sprint("dependent-", i), owner.owns(blocking)))
	}
	counter := &counter{count: map[string]int{}}
	stop := s.collect(counter.on(s.Config))
	s.rests()
	s.delete(owner, metav1.DeletePropagationBackground)
	s.goes(dependents...)
	stop() // a write is seen on the server before its answer is counted
	deletes, _ := counter.of(http.MethodDelete, s.namespace)
	gets, _ := counter.of(http.MethodGet, s.namespace)
	if deletes != n+1 || gets > 5 { // the one of rests, and whatever a lagging watch made it ask
		t.Errorf("%d objects took %d deletions and %d reads", n+1, deletes, gets)
	}
}

func TestKilledInTheMiddleNothingIsDoneWronglyOrTwice(t *testing.T) {
	s := newScene(t)
	const n = 300
	var owners, garbage, kept []made
	for i := range 3 {
		owner := s.make(configMaps, fmt.Sprint("owner-", i))
		owners = append(owners, owner)
		for j := range n / 3 {
			garbage = append(garbage, s.make(configMaps, fmt.Sprintf("garbage-%d-%d", i, j), owner.owns(blocking)))
		}
	}
	staying := s.make(configMaps, "staying")
	for i := range 20 {
		kept = append(kept, s.make(configMaps, fmt.Sprint("kept-", i), staying.owns(), owners[i%3].owns()))
	}
	counter := &counter{count: map[string]int{}}
	stop := s.collect(counter.on(s.Config))
	s.delete(owners[0], metav1.DeletePropagationBackground)
	s.delete(owners[1], metav1.DeletePropagationForeground)
	s.delete(owners[2], metav1.DeletePropagationBackground)
	for share := 1; share <= 3; share++ {
		s.eventually(func() string {
			if deletes, _ := counter.of(http.MethodDelete, s.namespace); deletes < share*n/5 {
				return fmt.Sprintf("%d are deleted", deletes)
			}
			return ""
		})
		stop()
		stop = s.collect(counter.on(s.Config))
	}
	s.goes(garbage...)
	s.goes(owners...)
	for _, m := range kept {
		s.keeps(m, "staying")
	}
	deletes, most := counter.of(http.MethodDelete, s.namespace)
	// A deletion whose answer a stopped process did not live to see is done and not counted:
	// so there may be fewer, and none twice.
	if deletes > n || most != 1 {
		t.Errorf("%d deletions of %d objects, up to %d of one", deletes, n, most)
	}
}

func TestItNeedsNoOtherRightsThanItSays(t *testing.T) {
	s := newScene(t)
	s.collect(s.Restricted(t, garbagecollector.Rights()))
	first, second := s.make(configMaps, "first"), s.make(configMaps, "second")
	both := s.make(configMaps, "both", first.owns(), second.owns())
	orphaned := s.make(configMaps, "orphaned", second.owns())
	custom := s.make(things(t), "custom", first.owns(blocking))
	s.delete(first, metav1.DeletePropagationForeground)
	s.goes(first, custom)
	s.keeps(both, "second")
	s.delete(second, metav1.DeletePropagationOrphan)
	s.goes(second)
	s.keeps(both)
	s.keeps(orphaned)
	other := newScene(t)
	elsewhere := other.make(configMaps, "elsewhere")
	s.rests()
	lost := s.make(configMaps, "lost", elsewhere.owns())
	s.goes(lost)
	s.eventually(s.reported(s.namespace, lost, elsewhere))
}
