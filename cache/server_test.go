// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// runFactory runs a factory until the test ends.
func runFactory(t *testing.T, c *client.Client) *cache.Factory {
	t.Helper()
	f := cache.NewFactory(c, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

// expect takes an event that must come.
func expect(t *testing.T, events <-chan string, want string) {
	t.Helper()
	select {
	case got := <-events:
		if got != want {
			t.Fatalf("told %q, want %q", got, want)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("waited in vain for %q", want)
	}
}

func tell[T object.Object](t *testing.T, i cache.SharedInformer[T]) <-chan string {
	t.Helper()
	events := make(chan string, 100)
	_, err := i.AddHandler(func(e cache.Event[T]) { events <- fmt.Sprint(e.Kind, " ", e.Key().Name) }, cache.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestRealServerIsFollowedOverProtobuf(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	maps := cache.Informer[*corev1.ConfigMap](runFactory(t, cluster.Client), cache.InNamespace(namespace), cache.WithLabels("kept=yes"))
	events := tell(t, maps)
	view := client.For[*corev1.ConfigMap](cluster.Client)
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", Labels: map[string]string{"kept": "yes"}}}
	made, err := view.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, events, "Added a")
	seen, err := maps.Get(object.KeyOf(made))
	if err != nil || seen.UID != made.UID || seen.ManagedFields != nil {
		t.Errorf("%v, %v", seen, err)
	}
	made.Data = map[string]string{"x": "1"}
	if made, err = view.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	expect(t, events, "Updated a")
	// Out of the selection is gone, into it is new.
	made.Labels = nil
	if made, err = view.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	expect(t, events, "Deleted a")
	made.Labels = map[string]string{"kept": "yes"}
	if _, err = view.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	expect(t, events, "Added a")
	if err := view.Delete(t.Context(), object.KeyOf(made)); err != nil {
		t.Fatal(err)
	}
	expect(t, events, "Deleted a")
}

// A custom kind, over JSON, whose definition comes, changes, goes and comes again while
// an informer watches.
func TestCustomKindIsFollowedThroughTheLifeOfItsDefinition(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	widgets := cache.Informer[*unstructured.Unstructured](runFactory(t, cluster.Client), cache.OfKind(kind))
	events := tell(t, widgets)
	first := object.Resource{Group: kind.Group, Version: kind.Version, Plural: "widgets", Kind: kind.Kind, Namespaced: true}
	view := client.ForResource[*unstructured.Unstructured](cluster.Client, first)
	v2 := first
	v2.Version = "v2"
	second := client.ForResource[*unstructured.Unstructured](cluster.Client, v2)

	for _, name := range []string{"first", "second"} {
		cluster.Define(t, first)
		if _, err := view.Create(t.Context(), widget(namespace, name, 1)); err != nil {
			t.Fatal(err)
		}
		expect(t, events, "Added "+name)
		item := widgets.Snapshot().Get(object.Key{Namespace: namespace, Name: name})
		o, err := item.Object()
		if err != nil {
			t.Fatal(err)
		}
		if size, _, err := unstructured.NestedInt64(o.Object, "spec", "size"); err != nil || size != 1 {
			t.Errorf("size %d, %v", size, err)
		}

		// A second version, which is stored from now on: what is written in it is read
		// in the first.
		cluster.Define(t, first, first.Version, v2.Version)
		later := widget(namespace, name+"-v2", 2)
		if _, err := second.Create(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		expect(t, events, "Added "+name+"-v2")
		if o, err := widgets.Get(object.KeyOf(later)); err != nil || o.GetAPIVersion() != "example.com/v1" {
			t.Errorf("%v, %v", o, err)
		}
		if err := second.Delete(t.Context(), object.KeyOf(later)); err != nil {
			t.Fatal(err)
		}
		expect(t, events, "Deleted "+name+"-v2")
		cluster.Undefine(t, first)
		expect(t, events, "Deleted "+name)
	}
}

func widget(namespace, name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{"size": size},
	}}
}

// followed creates, changes and deletes an object of a built-in kind before the eyes of
// an informer.
func followed[T object.Object](t *testing.T, c *client.Client, o T) {
	t.Run(fmt.Sprintf("%T", o), func(t *testing.T) {
		informer := cache.Informer[T](runFactory(t, c), cache.InNamespace(o.GetNamespace()), cache.WithLabels("test="+o.GetNamespace()))
		events := tell(t, informer)
		o.SetLabels(map[string]string{"test": o.GetNamespace()})
		view := client.For[T](c)
		made, err := view.Create(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, events, "Added "+made.GetName())
		seen, err := informer.Get(object.KeyOf(made))
		if err != nil {
			t.Fatal(err)
		}
		made.SetManagedFields(nil)
		if !equality.Semantic.DeepEqual(seen, made) {
			t.Errorf("the cache has\n%+v\nthe server answered\n%+v", seen, made)
		}
		change, err := client.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"changed": "yes"}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := view.Patch(t.Context(), object.KeyOf(made), change); err != nil {
			t.Fatal(err)
		}
		expect(t, events, "Updated "+made.GetName())
		notes, err := informer.Snapshot().Get(object.KeyOf(made)).Annotations()
		if err != nil || notes["changed"] != "yes" {
			t.Errorf("annotations %v, %v", notes, err)
		}
		if err := view.Delete(t.Context(), object.KeyOf(made), client.GracePeriod(0)); err != nil {
			t.Fatal(err)
		}
		expect(t, events, "Deleted "+made.GetName())
	})
}

func TestRealServerSendsBuiltInKindsAsProtobuf(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	c, line := noted(t, cluster.Config)
	about := metav1.ObjectMeta{Namespace: namespace, Name: "a"}
	labels := map[string]string{"app": "a"}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	followed(t, c, &corev1.ConfigMap{ObjectMeta: about, Data: map[string]string{"k": "v"}})
	followed(t, c, &corev1.Secret{ObjectMeta: about, Data: map[string][]byte{"k": {0, 1, 2}}})
	followed(t, c, &corev1.Service{ObjectMeta: about, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	followed(t, c, &coordinationv1.Lease{ObjectMeta: about})
	followed(t, c, &appsv1.Deployment{ObjectMeta: about, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
	}})
	followed(t, c, &rbacv1.Role{ObjectMeta: about, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}})
	for _, answer := range line.answers("watch") {
		if answer.encoding != "application/vnd.kubernetes.protobuf;stream=watch" {
			t.Errorf("%s was answered in %s", answer.query, answer.encoding)
		}
	}
}

// Whatever a server serves, by itself or by definition, an informer of metadata follows.
func TestEveryKindOfARealServerIsFollowedByItsMetadata(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	served, err := cluster.Client.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	factory := runFactory(t, cluster.Client)
	var informers []cache.SharedInformer[*metav1.PartialObjectMetadata]
	var maps cache.SharedInformer[*metav1.PartialObjectMetadata]
	for _, kind := range served {
		// The definition of Widgets comes and goes in another test.
		if !kind.Can("list") || !kind.Can("watch") || kind.Group == "example.com" {
			continue
		}
		informer := cache.Informer[*metav1.PartialObjectMetadata](factory,
			cache.OfKind(schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}))
		if kind.Plural == "configmaps" {
			maps = informer
		}
		informers = append(informers, informer)
	}
	if len(informers) < 40 {
		t.Errorf("the server serves %d kinds that can be watched", len(informers))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, informer := range informers {
		if err := informer.WaitForSync(ctx); err != nil {
			t.Error(err)
		}
	}
	events := make(chan string, 100)
	if _, err := maps.AddHandler(func(e cache.Event[*metav1.PartialObjectMetadata]) {
		if e.Key().Namespace == namespace {
			events <- fmt.Sprint(e.Kind, " ", e.Key().Name)
		}
	}, cache.HandlerOptions{}); err != nil {
		t.Fatal(err)
	}
	before := maps.Handle().Status().Raw
	const data = 100_000
	o, err := client.For[*corev1.ConfigMap](cluster.Client).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "large", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
		Data:       map[string]string{"text": strings.Repeat("x", data)},
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, events, "Added large")
	seen, err := maps.Get(object.KeyOf(o))
	if err != nil || seen.UID != o.UID || seen.Labels["a"] != "b" || seen.Annotations["c"] != "d" || seen.ManagedFields != nil {
		t.Errorf("%+v, %v", seen, err)
	}
	if grown := maps.Handle().Status().Raw - before; grown > data/10 {
		t.Errorf("metadata of an object with %d bytes of data has %d bytes", data, grown)
	}
}

// Rights that are taken away and given back: the informer says so, once, keeps what it
// has, and misses nothing.
func TestRightsThatGoAndComeBackLoseNothing(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}}
	config := cluster.Restricted(t, rules)
	line := new(cuttable)
	cut := rest.CopyConfig(config)
	cut.Wrap(func(to http.RoundTripper) http.RoundTripper { line.to = to; return line })
	c, err := client.New(cut)
	if err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	factory := cache.NewFactory(c, slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- factory.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	maps := cache.Informer[*corev1.ConfigMap](factory, cache.InNamespace(namespace))
	events := tell(t, maps)
	view := client.For[*corev1.ConfigMap](cluster.Client)
	create := func(name string) {
		t.Helper()
		if _, err := view.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	create("a")
	expect(t, events, "Added a")

	bindings := client.For[*rbacv1.ClusterRoleBinding](cluster.Client)
	binding, err := bindings.Get(t.Context(), object.Key{Name: config.Impersonate.UserName})
	if err != nil {
		t.Fatal(err)
	}
	if err := bindings.Delete(t.Context(), object.KeyOf(binding)); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the rights are gone", func() bool {
		_, _, err := client.For[*corev1.ConfigMap](c).List(t.Context(), client.Selection{Namespace: namespace})
		return apierrors.IsForbidden(err)
	})
	line.cut() // a server looks at rights where a watch begins
	controlplanetest.Eventually(t, "the informer has been refused more than once", func() bool {
		return maps.Handle().Status().Watches["forbidden"] > 2
	})
	if !apierrors.IsForbidden(maps.Trouble()) {
		t.Errorf("trouble: %v", maps.Trouble())
	}
	if n := strings.Count(log.String(), "reason=forbidden"); n != 1 {
		t.Errorf("it was logged %d times:\n%s", n, log.String())
	}
	if _, err := maps.Get(object.Key{Namespace: namespace, Name: "a"}); err != nil {
		t.Errorf("what was there is not kept: %v", err)
	}
	create("b")
	if err := view.Delete(t.Context(), object.Key{Namespace: namespace, Name: "a"}); err != nil {
		t.Fatal(err)
	}

	if _, err := bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: binding.Name}, Subjects: binding.Subjects, RoleRef: binding.RoleRef,
	}); err != nil {
		t.Fatal(err)
	}
	cluster.AwaitRights(t, config, rules)
	expect(t, events, "Added b")
	expect(t, events, "Deleted a")
	controlplanetest.Eventually(t, "the informer is well", func() bool { return maps.Trouble() == nil })
	if n := maps.Handle().Status().Relists["forbidden"]; n != 0 {
		t.Errorf("the state was read anew %d times", n)
	}
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// noting is a line to a server that notes what was answered. It may refuse watch lists,
// as servers do that do not know them.
type noting struct {
	to      http.RoundTripper
	refuses bool

	mu  sync.Mutex
	all []answer
}

type answer struct {
	query      url.Values
	encoding   string
	compressed bool
}

// noted returns a client that reads through a line that notes.
func noted(t *testing.T, config *rest.Config) (*client.Client, *noting) {
	t.Helper()
	line := new(noting)
	config = rest.CopyConfig(config)
	config.Wrap(func(to http.RoundTripper) http.RoundTripper { line.to = to; return line })
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c, line
}

func (l *noting) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if l.refuses && query.Get("sendInitialEvents") != "" {
		return (&answering{}).RoundTrip(r)
	}
	response, err := l.to.RoundTrip(r)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, answer{query, response.Header.Get("Content-Type"), response.Uncompressed})
	}
	return response, err
}

// answers returns what was answered to watches, or to lists of objects in namespaces.
func (l *noting) answers(to string) (all []answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.all {
		watch, list := a.query.Get("watch") == "true", a.query.Has("labelSelector") && !a.query.Has("watch")
		if to == "watch" && watch || to == "list" && list {
			all = append(all, a)
		}
	}
	return all
}

func TestRealServersListsAreReadInPagesAndCompressed(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	view := client.For[*corev1.ConfigMap](cluster.Client)
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string]string{}
	for n := range 10 {
		// Together more than the 128 KiB from which a server compresses.
		text := fmt.Sprint(random.Uint64()) + strings.Repeat("some text ", 3000)
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("m", n), Labels: map[string]string{"test": namespace}}, Data: map[string]string{"text": text}}
		if _, err := view.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		want[o.Name] = text
	}
	for name, c := range map[string]struct {
		size  int64
		pages int
	}{"in pages": {3, 4}, "whole": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			client, line := noted(t, cluster.Config)
			line.refuses = true
			configs := cache.Informer[*corev1.ConfigMap](runFactory(t, client), cache.PageSize(c.size), cache.WithLabels("test="+namespace))
			if err := configs.WaitForSync(t.Context()); err != nil {
				t.Fatal(err)
			}
			lists := line.answers("list")
			if len(lists) != c.pages {
				t.Errorf("%d lists, want %d", len(lists), c.pages)
			}
			for n, list := range lists {
				if limit := list.query.Get("limit"); (c.size > 0) != (limit == "3") || (n > 0) != list.query.Has("continue") {
					t.Errorf("list %d asked for %v", n, list.query)
				}
				if list.encoding != "application/vnd.kubernetes.protobuf" {
					t.Errorf("list %d is %s", n, list.encoding)
				}
			}
			if name == "whole" && !lists[0].compressed {
				t.Error("the list was not compressed")
			}
			have := map[string]string{}
			for key, item := range configs.All() {
				o, err := item.Object()
				if err != nil {
					t.Fatal(err)
				}
				have[key.Name] = o.Data["text"]
			}
			if !maps.Equal(have, want) {
				t.Errorf("%d objects, want the %d that were made", len(have), len(want))
			}
		})
	}
}

func TestRealServerSelectsByLabelsAndFields(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	factory := runFactory(t, cluster.Client)
	running := cache.Informer[*corev1.Pod](factory, cache.InNamespace(namespace),
		cache.WithFields("status.phase=Running"), cache.WithLabels("app in (web,db),!hidden"))
	events := tell(t, running)
	if err := running.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	view := client.For[*corev1.Pod](cluster.Client)
	create := func(name string, labels map[string]string) *corev1.Pod {
		t.Helper()
		p, err := view.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}, NodeName: "none"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	become := func(p *corev1.Pod, phase corev1.PodPhase) {
		t.Helper()
		change, err := client.MergePatch(map[string]any{"status": map[string]any{"phase": phase}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := view.Sub("status").Patch(t.Context(), object.KeyOf(p), change); err != nil {
			t.Fatal(err)
		}
	}
	web := create("web", map[string]string{"app": "web"})
	become(create("cron", map[string]string{"app": "cron"}), corev1.PodRunning)
	become(create("hidden", map[string]string{"app": "web", "hidden": ""}), corev1.PodRunning)
	become(create("db", map[string]string{"app": "db"}), corev1.PodRunning)
	expect(t, events, "Added db")
	become(web, corev1.PodRunning)
	expect(t, events, "Added web")
	become(web, corev1.PodSucceeded)
	expect(t, events, "Deleted web")
	if n := running.Snapshot().Len(); n != 1 {
		t.Errorf("%d objects are selected, want one", n)
	}
}
