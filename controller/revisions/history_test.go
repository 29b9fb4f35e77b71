// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package revisions_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/revisions"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var statefulSetKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// database returns a StatefulSet whose template has an image.
func database(uid types.UID, image string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: uid}}
	set.Spec.Template.Labels = map[string]string{"app": "db"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "db", Image: image}}
	return set
}

func stateOf(set *appsv1.StatefulSet) revisions.State {
	state, err := revisions.StatefulSet(set)
	if err != nil {
		panic(err)
	}
	return state
}

// world is a server with revisions.
type world struct {
	server   *fakeapi.Resource
	client   *client.Client
	factory  *cache.Factory
	informer cache.SharedInformer[*appsv1.ControllerRevision]
	history  *revisions.History
}

func newWorld() *world {
	w := &world{server: fakeapi.New().Serve(object.Resource{Group: "apps", Version: "v1", Plural: "controllerrevisions", Kind: "ControllerRevision", Namespaced: true})}
	var err error
	if w.client, err = client.New(w.server.Config()); err != nil {
		panic(err)
	}
	w.factory = cache.NewFactory(w.client, nil)
	w.informer = cache.Informer[*appsv1.ControllerRevision](w.factory)
	w.history = revisions.New(w.informer)
	return w
}

// all returns the revisions of the server, sorted.
func (w *world) all() []*appsv1.ControllerRevision {
	all, _, err := client.For[*appsv1.ControllerRevision](w.client).List(context.Background(), client.Selection{})
	if err != nil {
		panic(err)
	}
	revisions.Sort(all)
	return all
}

// ensure is a run whose informer has seen everything.
func (w *world) ensure(set *appsv1.StatefulSet) (revisions.Ensured, error) {
	return w.history.Ensure(context.Background(), stateOf(set), w.all(), set.Status.CollisionCount)
}

func numbers(list []*appsv1.ControllerRevision) string {
	var text []string
	for _, r := range list {
		template, err := revisions.Template(r)
		if err != nil {
			panic(err)
		}
		text = append(text, fmt.Sprintf("%d %s", r.Revision, template.Spec.Containers[0].Image))
	}
	return strings.Join(text, ", ")
}

func TestTheNewestRevisionIsThatOfTheObject(t *testing.T) {
	w := newWorld()
	for _, step := range []struct{ image, want, writes string }{
		{"db:1", "1 db:1", "create"},
		{"db:1", "1 db:1", ""},
		{"db:2", "1 db:1, 2 db:2", "create"},
		{"db:3", "1 db:1, 2 db:2, 3 db:3", "create"},
		{"db:2", "1 db:1, 3 db:3, 4 db:2", "patch"}, // a rollback
		{"db:2", "1 db:1, 3 db:3, 4 db:2", ""},
	} {
		w.server.Forget()
		got, err := w.ensure(database("db-uid", step.image))
		if err != nil || got.Collisions != nil {
			t.Fatalf("%s: %v, collisions %v", step.image, err, got.Collisions)
		}
		var writes []string
		for _, request := range w.server.Requests() {
			if request.Verb != "list" {
				writes = append(writes, request.Verb)
			}
		}
		if list := numbers(w.all()); list != step.want || strings.Join(writes, " ") != step.writes {
			t.Errorf("%s: the revisions are %s after %v, want %s after %s", step.image, list, writes, step.want, step.writes)
		}
		if newest := w.all()[len(w.all())-1]; got.Revision.Name != newest.Name || got.Revision.Revision != newest.Revision {
			t.Errorf("%s: returned %s, number %d", step.image, got.Revision.Name, got.Revision.Revision)
		}
	}
}

func TestARevisionThatTheInformerHasNotShownIsFound(t *testing.T) {
	w := newWorld()
	set := database("db-uid", "db:1")
	first, err := w.ensure(set)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.history.Ensure(t.Context(), stateOf(set), nil, nil)
	if err != nil || again.Revision.UID != first.Revision.UID || again.Collisions != nil {
		t.Errorf("returned %v, collisions %v: %v", again.Revision, again.Collisions, err)
	}
}

func TestACollisionIsCountedAndNamedAnew(t *testing.T) {
	for name, occupant := range map[string]*appsv1.ControllerRevision{
		"other data of the same owner":    stateOf(database("db-uid", "db:other")).Revision(1, nil),
		"the same data of another object": stateOf(database("other-uid", "db:1")).Revision(1, nil),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			set := database("db-uid", "db:1")
			state := stateOf(set)
			occupant.Name = state.Revision(1, nil).Name
			if err := w.server.Add(occupant); err != nil {
				t.Fatal(err)
			}
			got, err := w.history.Ensure(t.Context(), state, nil, nil)
			if err != nil || got.Collisions == nil || *got.Collisions != 1 {
				t.Fatalf("returned %v, collisions %v: %v", got.Revision, got.Collisions, err)
			}
			if want := state.Revision(1, got.Collisions); got.Revision.Name != want.Name || got.Revision.Labels[revisions.HashLabel] != want.Labels[revisions.HashLabel] || len(w.all()) != 2 {
				t.Errorf("the revision is %s, want %s", got.Revision.Name, want.Name)
			}
		})
	}
}

func TestATemplateThatIsOnlyWrittenDifferentlyIsNoNewRevision(t *testing.T) {
	w := newWorld()
	set := database("db-uid", "db:1")
	older := stateOf(set).Revision(1, nil)
	older.Data.Raw = []byte(strings.Replace(string(older.Data.Raw), `"metadata":{`, `"metadata":{"creationTimestamp":null,`, 1))
	if err := w.server.Add(older); err != nil {
		t.Fatal(err)
	}
	// The API server has filled in defaults that the revision was written without.
	container := &set.Spec.Template.Spec.Containers[0]
	container.ImagePullPolicy, container.TerminationMessagePath, container.TerminationMessagePolicy = corev1.PullIfNotPresent, "/dev/termination-log", corev1.TerminationMessageReadFile
	pod := &set.Spec.Template.Spec
	pod.DNSPolicy, pod.RestartPolicy, pod.SchedulerName = corev1.DNSClusterFirst, corev1.RestartPolicyAlways, corev1.DefaultSchedulerName
	pod.SecurityContext, pod.TerminationGracePeriodSeconds = &corev1.PodSecurityContext{}, new(int64(30))
	got, err := w.ensure(set)
	if err != nil || got.Revision.Name != older.Name || len(w.all()) != 1 {
		t.Errorf("returned %v of %s: %v", got.Revision, numbers(w.all()), err)
	}
}

func TestARevisionThatHasChangedIsNotRenumbered(t *testing.T) {
	w := newWorld()
	for _, image := range []string{"db:1", "db:2"} {
		if _, err := w.ensure(database("db-uid", image)); err != nil {
			t.Fatal(err)
		}
	}
	stale := w.all()
	changed := stale[0].DeepCopy()
	changed.Annotations = map[string]string{"note": "a"}
	if err := w.server.Put(changed); err != nil {
		t.Fatal(err)
	}
	_, err := w.history.Ensure(t.Context(), stateOf(database("db-uid", "db:1")), stale, nil)
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "shop/"+stale[0].Name) {
		t.Errorf("the error is %v", err)
	}
}

func TestAFailureNamesTheRevision(t *testing.T) {
	w := newWorld()
	w.server.RefuseNext(1, "create", fakeapi.Forbidden("exceeded quota"))
	name := stateOf(database("db-uid", "db:1")).Revision(1, nil).Name
	if _, err := w.ensure(database("db-uid", "db:1")); err == nil || !strings.Contains(err.Error(), "creating ControllerRevision shop/"+name) {
		t.Errorf("the error is %v", err)
	}
}

func TestAnotherRevisionOfTheNameIsNotDeleted(t *testing.T) {
	w := newWorld()
	if _, err := w.ensure(database("db-uid", "db:1")); err != nil {
		t.Fatal(err)
	}
	r := w.all()[0]
	gone := r.DeepCopy()
	gone.UID = "another"
	if err := w.history.Delete(t.Context(), gone); err != nil || len(w.all()) != 1 {
		t.Errorf("%d revisions are left: %v", len(w.all()), err)
	}
	for range 2 {
		if err := w.history.Delete(t.Context(), r); err != nil || len(w.all()) != 0 {
			t.Errorf("%d revisions are left: %v", len(w.all()), err)
		}
	}
}

func TestClaimAdoptsAndReleases(t *testing.T) {
	w := newWorld()
	set := database("db-uid", "db:1")
	add := func(name string, number int64, change func(*appsv1.ControllerRevision)) {
		r := stateOf(set).Revision(number, nil)
		r.Name = name
		change(r)
		if err := w.server.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	add("mine", 3, func(*appsv1.ControllerRevision) {})
	add("orphan", 2, func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil })
	add("released", 1, func(r *appsv1.ControllerRevision) { r.Labels = map[string]string{"app": "web"} })
	add("foreign", 4, func(r *appsv1.ControllerRevision) {
		r.OwnerReferences = []metav1.OwnerReference{owned.By(database("other-uid", ""), statefulSetKind)}
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.factory.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	if err := w.informer.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	owner := revisions.Owner{
		Object: set, Kind: statefulSetKind, Selector: labels.SelectorFromSet(labels.Set{"app": "db"}),
		Live: func(context.Context) (object.Object, error) { return set, nil },
	}
	claimed, err := w.history.Claim(ctx, owner)
	if err != nil || numbers(claimed) != "2 db:1, 3 db:1" {
		t.Errorf("claimed %s: %v", numbers(claimed), err)
	}
	for _, r := range w.all() {
		uid := types.UID("")
		if ref := metav1.GetControllerOf(r); ref != nil {
			uid = ref.UID
		}
		if want := map[string]types.UID{"mine": "db-uid", "orphan": "db-uid", "released": "", "foreign": "other-uid"}[r.Name]; uid != want {
			t.Errorf("%s is controlled by %q, want %q", r.Name, uid, want)
		}
	}
}

// A history of edits and rollbacks, with a limit.
func TestHistoryOfRandomEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		limit := rapid.Int32Range(0, 3).Draw(t, "limit")
		live := map[string]bool{}
		var highest int64
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			set := database("db-uid", rapid.SampledFrom([]string{"db:1", "db:2", "db:3", "db:4", "db:5"}).Draw(t, "image"))
			before := w.all()
			got, err := w.ensure(set)
			if err != nil {
				t.Fatal(err)
			}
			all := w.all()
			newest := all[len(all)-1]
			if newest.Name != got.Revision.Name || len(stateOf(set).Equal(all)) != 1 || newest.Revision < highest {
				t.Fatalf("the revisions are %s after %s, and %s was returned", numbers(all), numbers(before), got.Revision.Name)
			}
			highest = newest.Revision
			if rapid.Bool().Draw(t, "pods come or go") {
				live[rapid.SampledFrom(all).Draw(t, "of").Name] = rapid.Bool().Draw(t, "come")
			}
			inUse := func(r *appsv1.ControllerRevision) bool { return live[r.Name] || r.Name == newest.Name }
			idle := len(slices.DeleteFunc(slices.Clone(all), inUse))
			for _, r := range revisions.Surplus(all, limit, inUse) {
				if inUse(r) {
					t.Fatalf("revision %d is in use and surplus", r.Revision)
				}
				if err := w.history.Delete(context.Background(), r); err != nil {
					t.Fatal(err)
				}
			}
			left := slices.DeleteFunc(w.all(), inUse)
			if len(left) != min(idle, int(limit)) {
				t.Fatalf("%d idle revisions are left of %d, the limit is %d", len(left), idle, limit)
			}
		}
	})
}
