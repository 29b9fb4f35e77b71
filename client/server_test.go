// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func get(t *testing.T, c *client.Client, path string, into any) {
	t.Helper()
	answer, err := c.Request(http.MethodGet).Path(path).Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer.Body, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// What the client knows of built-in kinds without asking is what a real server
// says when asked.
func TestBuiltInKindsAreWhereTheServerHasThem(t *testing.T) {
	c := shared.Get(t).Client
	paths := []string{"/api/v1"}
	var groups metav1.APIGroupList
	get(t, c, "/apis", &groups)
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			paths = append(paths, "/apis/"+version.GroupVersion)
		}
	}
	compared := 0
	for _, path := range paths {
		var list metav1.APIResourceList
		get(t, c, path, &list)
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			kind := version.WithKind(r.Kind)
			if strings.Contains(r.Name, "/") || !scheme.Scheme.Recognizes(kind) {
				continue
			}
			want := object.Resource{Group: kind.Group, Version: kind.Version, Plural: r.Name, Kind: r.Kind, Namespaced: r.Namespaced}
			got, err := c.Resolve(t.Context(), kind)
			if err != nil || got != want {
				t.Errorf("%s: %+v, %v; the server says %+v", kind, got, err, want)
			}
			compared++
		}
	}
	if compared < 50 {
		t.Errorf("only %d kinds were compared", compared)
	}
}

func TestEveryVerbAgainstARealServer(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	var written recorder
	ctx := client.WithRecorder(t.Context(), &written)
	view := client.For[*corev1.ConfigMap](cluster.Client)
	key := object.Key{Namespace: namespace, Name: "a"}

	made, err := view.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}, Data: map[string]string{"x": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	first := written.one(t)
	same, err := view.Update(ctx, made)
	if err != nil || same.ResourceVersion != made.ResourceVersion {
		t.Fatalf("%v, %v", same, err)
	}
	if w := written.one(t); !w.Version.IsZero() {
		t.Errorf("an update that changed nothing made version %s", w.Version)
	}
	applied, err := view.Apply(ctx, key, "test", map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"y": "2"},
	})
	if err != nil || applied.Data["x"] != "1" || applied.Data["y"] != "2" {
		t.Fatalf("%v, %v", applied, err)
	}
	second := written.one(t)
	if !second.Version.AtLeast(first.Version) || second.Version == first.Version {
		t.Errorf("versions %s and %s", first.Version, second.Version)
	}
	if !slices.ContainsFunc(applied.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == "test" }) {
		t.Error("the field manager is not there")
	}
	if _, err := view.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dry"}}, client.DryRun()); err != nil {
		t.Fatal(err)
	}
	if len(written) != 0 {
		t.Errorf("a dry run was recorded: %+v", written)
	}
	list, version, err := view.List(ctx, client.Selection{Namespace: namespace, Fields: "metadata.name=a"})
	if err != nil || len(list) != 1 || !version.AtLeast(second.Version) {
		t.Fatalf("%d objects at %s, %v", len(list), version, err)
	}
	if err := view.DeleteCollection(ctx, client.Selection{Namespace: namespace, Fields: "metadata.name=a"}); err != nil {
		t.Fatal(err)
	}
	if w := written.one(t); w.Verb != "deletecollection" || !w.Unknown {
		t.Errorf("%+v", w)
	}
}

// Nothing can be made in a namespace that goes or that is not there, and both have their
// own answer.
func TestACreateIsRefusedForTheSakeOfItsNamespace(t *testing.T) {
	cluster := shared.Get(t)
	maps := client.For[*corev1.ConfigMap](cluster.Client)
	create := func(namespace, name string) error {
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
		return err
	}
	going := cluster.Namespace(t) // for as long as no controller lets it go
	if err := client.For[*corev1.Namespace](cluster.Client).Delete(t.Context(), object.Key{Name: going}); err != nil {
		t.Fatal(err)
	}
	there := cluster.Namespace(t)
	if err := create(there, "twice"); err != nil {
		t.Fatal(err)
	}
	_, missing := maps.Get(t.Context(), object.Key{Namespace: there, Name: "missing"})
	_, elsewhere := maps.Get(t.Context(), object.Key{Namespace: "nowhere", Name: "missing"})
	for what, c := range map[string]struct {
		err  error
		want bool
	}{
		"a namespace that goes":          {create(going, "a"), true},
		"a namespace that is not there":  {create("nowhere", "a"), true},
		"wrapped":                        {fmt.Errorf("making it: %w", create("nowhere", "a")), true},
		"an object that is there":        {create(there, "twice"), false},
		"an object that is not there":    {missing, false},
		"nor is its namespace":           {elsewhere, false},
		"an object with a wrong name":    {create(there, "WRONG"), false},
		"no error":                       {nil, false},
		"an error that is not an answer": {errors.New("namespaces \"nowhere\" not found"), false},
	} {
		if got := client.NamespaceGone(c.err); got != c.want {
			t.Errorf("%s: %t, want %t (%v)", what, got, c.want, c.err)
		}
	}
}

// Writes whose answers nobody reads: what is needed to wait for them comes all the same.
func TestAnAnswerOfMetadataAlone(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	var written recorder
	ctx := client.WithRecorder(t.Context(), &written)
	view := client.For[*corev1.Service](cluster.Client).With(client.FieldManager("first"), client.MetadataAnswer())
	key := object.Key{Namespace: namespace, Name: "web"}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	var last object.Version
	check := func(o *corev1.Service, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if o.UID == "" || o.ResourceVersion == "" || o.Name != "web" || o.Kind != "Service" {
			t.Errorf("the metadata is %v of a %q", o.ObjectMeta, o.Kind)
		}
		if len(o.Spec.Ports) != 0 || o.Spec.ClusterIP != "" {
			t.Errorf("more than metadata came: %v", o.Spec)
		}
		w := written.one(t)
		if w.UID != o.UID || w.Key != key || string(w.Version) != o.ResourceVersion || w.Version == last || w.Unknown {
			t.Errorf("%+v is recorded", w)
		}
		last = w.Version
	}
	check(view.Create(ctx, service))
	service.Spec.Ports[0].Name = "http"
	check(view.Update(ctx, service))
	service.Status.Conditions = []metav1.Condition{{Type: "Seen", Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now()}}
	check(view.UpdateStatus(ctx, service))
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]string{"a": "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	check(view.Patch(ctx, key, patch))
	check(view.Apply(ctx, key, "second", map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web", "labels": map[string]string{"c": "d"}},
	}))
	whole, err := view.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if whole.Spec.Ports[0].Name != "http" || whole.Labels["a"] != "b" || whole.Labels["c"] != "d" || len(whole.Status.Conditions) != 1 {
		t.Errorf("what was written is not there: %v", whole)
	}
	for _, manager := range []string{"first", "second"} { // the option of a single write is the last word
		if !slices.ContainsFunc(whole.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == manager }) {
			t.Errorf("%s manages nothing of it", manager)
		}
	}
	if len(whole.ManagedFields) != 3 { // first twice: of the object and of its status
		t.Errorf("%d entries of managed fields: %v", len(whole.ManagedFields), whole.ManagedFields)
	}
}

// patchWithUID creates a ConfigMap, and returns how a patch ends that has a UID, or that of the ConfigMap if it is empty.
func patchWithUID(t *testing.T, c *client.Client, key object.Key, uid types.UID) error {
	t.Helper()
	maps := client.For[*corev1.ConfigMap](c)
	created, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"uid": cmp.Or(uid, created.UID), "labels": map[string]string{"a": "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = maps.Patch(t.Context(), key, patch)
	return err
}

// A 404 may be about an object, about its kind, or from somebody who knows nothing of both.
func TestAnObjectIsAbsentWhereTheServerLookedForIt(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	get := func(r object.Resource) error {
		key := object.Key{Name: "missing"}
		if r.Namespaced {
			key.Namespace = namespace
		}
		_, err := client.ForResource[*metav1.PartialObjectMetadata](cluster.Client, r).Get(t.Context(), key)
		return err
	}
	maps := object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}
	for what, c := range map[string]struct {
		err  error
		want bool
	}{
		"an object":              {get(maps), true},
		"of the cluster":         {get(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}), true},
		"wrapped":                {fmt.Errorf("reading it: %w", get(maps)), true},
		"of a kind of none":      {get(object.Resource{Version: "v1", Plural: "ghosts", Kind: "Ghost", Namespaced: true}), false},
		"of a version of none":   {get(object.Resource{Group: "apps", Version: "v9", Plural: "deployments", Kind: "Deployment", Namespaced: true}), false},
		"of a group of none":     {get(object.Resource{Group: "nowhere.example.org", Version: "v1", Plural: "ghosts", Kind: "Ghost", Namespaced: true}), false},
		"no error":               {nil, false},
		"another of its name":    {patchWithUID(t, cluster.Client, object.Key{Namespace: namespace, Name: "kept"}, "another"), true},
		"the same":               {patchWithUID(t, cluster.Client, object.Key{Namespace: namespace, Name: "same"}, ""), false},
		"another answer":         {apierrors.NewConflict(corev1.Resource("configmaps"), "missing", errors.New("no")), false},
		"who asked was not told": {errors.New("configmaps \"missing\" not found"), false},
	} {
		if got := client.Absent(c.err); got != c.want {
			t.Errorf("%s: %t, want %t (%v)", what, got, c.want, c.err)
		}
	}
}
