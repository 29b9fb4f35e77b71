// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Two states are the same as each alone, however their entries are written, and share what is equal.
func TestTreesOfTwoStatesAreThoseOfTheObjects(t *testing.T) {
	gadget := func(n, size int) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Gadget",
			"metadata": map[string]any{
				"namespace": "ns", "name": fmt.Sprint("g", n), "uid": fmt.Sprint("u", n), "resourceVersion": fmt.Sprint(n + size + 1),
				"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Set", "name": "s", "uid": "s", "controller": true}},
			},
			"spec":   map[string]any{"size": int64(size)},
			"status": map[string]any{"text": strings.Repeat("of some length ", 12)},
		}}
	}
	a := newArchive(&content{gvk: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"},
		typ: reflect.TypeFor[*unstructured.Unstructured](), new: func() object.Object { return new(unstructured.Unstructured) }})
	packings := map[packing]bool{}
	for n := 0; len(packings) < 2 && n < 5000; n++ {
		old, now := mustEntry(t, a, gadget(n, 1)), mustEntry(t, a, gadget(n, 2))
		packings[now.packing] = true
		was, is, err := TreesOf(Item[*unstructured.Unstructured]{entry: old}, Item[*unstructured.Unstructured]{entry: now})
		if err != nil || !reflect.DeepEqual(was, gadget(n, 1).Object) || !reflect.DeepEqual(is, gadget(n, 2).Object) {
			t.Fatalf("%v and %v, %v; want %v and %v", was, is, err, gadget(n, 1).Object, gadget(n, 2).Object)
		}
		if reflect.ValueOf(was["status"]).Pointer() != reflect.ValueOf(is["status"]).Pointer() {
			t.Fatal("what is equal is not shared")
		}
	}
	if len(packings) < 2 {
		t.Errorf("entries were written in the ways %v, want compressed ones and patches", packings)
	}
}

func TestTreesOfAStateThatDoesNotExistAreNil(t *testing.T) {
	a := newArchive(&content{gvk: schema.GroupVersionKind{Version: "v1", Kind: "Gadget"},
		typ: reflect.TypeFor[*unstructured.Unstructured](), new: func() object.Object { return new(unstructured.Unstructured) }})
	e := entryOfJSON(t, a, `{"metadata":{"name":"a","resourceVersion":"1"},"spec":{}}`) // as in a list: without apiVersion and kind
	some, none := Item[*unstructured.Unstructured]{entry: e}, Item[*unstructured.Unstructured]{}
	want := map[string]any{"apiVersion": "v1", "kind": "Gadget", "metadata": map[string]any{"name": "a", "resourceVersion": "1"}, "spec": map[string]any{}}
	for _, c := range []struct {
		old, now         Item[*unstructured.Unstructured]
		wantOld, wantNow map[string]any
	}{{none, some, nil, want}, {some, none, want, nil}, {some, some, want, want}, {none, none, nil, nil}} {
		was, is, err := TreesOf(c.old, c.now)
		if err != nil || !reflect.DeepEqual(was, c.wantOld) || !reflect.DeepEqual(is, c.wantNow) {
			t.Errorf("%v and %v, %v; want %v and %v", was, is, err, c.wantOld, c.wantNow)
		}
	}
	broken := entryOfJSON(t, a, `{"metadata":{"name":"a","resourceVersion":"2"},"spec":{}}`)
	broken.text = broken.text[:len(broken.text)-2]
	_, _, err := TreesOf(some, Item[*unstructured.Unstructured]{entry: broken})
	if err == nil || !strings.Contains(err.Error(), "/a from the cache") && !strings.Contains(err.Error(), "of a from the cache") {
		t.Errorf("error %v, want one that names the object", err)
	}
}

func entryOfJSON(t *testing.T, a *archive, text string) *entry {
	t.Helper()
	var f frame
	if err := f.read(wire.JSON, []byte(text)); err != nil {
		t.Fatal(err)
	}
	e, err := a.entry(&f)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Unstructured objects that travel as protobuf are those of their JSON, as an object, as a single tree, and as two trees that share
// what is equal.
func TestUnstructuredObjectsOfMessagesAreThoseOfTheirJSON(t *testing.T) {
	yes := true
	pod := func(version, image string) *corev1.Pod {
		return &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "a", UID: "6f9619ff-8b86-4011-b42d-00c04fc964ff", ResourceVersion: version, Generation: 2,
				CreationTimestamp: metav1.Unix(1_767_225_600, 0), Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"a": "b"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u", Controller: &yes}},
				Finalizers:      []string{"example.com/f"},
				ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:nodeName":{}}}`)}},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}, NodeName: "n"},
		}
	}
	schema, ok := wire.SchemaOf(reflect.TypeFor[corev1.Pod]())
	if !ok {
		t.Fatal("a Pod has no schema")
	}
	a := newArchive(&content{gvk: corev1.SchemeGroupVersion.WithKind("Pod"), typ: reflect.TypeFor[*unstructured.Unstructured](), managed: true, messages: schema,
		new: func() object.Object { return new(unstructured.Unstructured) }})
	entryOf := func(p *corev1.Pod) Item[*unstructured.Unstructured] {
		t.Helper()
		raw, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var f frame
		if err := f.read(wire.Protobuf, raw); err != nil {
			t.Fatal(err)
		}
		e, err := a.entry(&f)
		if err != nil {
			t.Fatal(err)
		}
		return Item[*unstructured.Unstructured]{entry: e}
	}
	asJSON := func(p *corev1.Pod) map[string]any {
		t.Helper()
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		return u.Object
	}
	// decoded decodes the fieldsV1 of a tree that TreesOf has made.
	decoded := func(tree map[string]any) map[string]any {
		t.Helper()
		for _, m := range tree["metadata"].(map[string]any)["managedFields"].([]any) {
			m := m.(map[string]any)
			if raw, lazy := m["fieldsV1"].(json.RawMessage); lazy {
				var fields map[string]any
				if err := json.Unmarshal(raw, &fields); err != nil {
					t.Fatal(err)
				}
				m["fieldsV1"] = fields
			}
		}
		return tree
	}
	one, other := pod("1", "web:1"), pod("2", "web:2")
	before, after := entryOf(one), entryOf(other)
	if o, err := before.Object(); err != nil || !reflect.DeepEqual(o.Object, asJSON(one)) {
		t.Errorf("the object is\n%v, %v; want\n%v", o, err, asJSON(one))
	}
	was, is, err := TreesOf(before, after)
	if err != nil || !reflect.DeepEqual(decoded(was), asJSON(one)) || !reflect.DeepEqual(decoded(is), asJSON(other)) {
		t.Errorf("the trees are\n%v and\n%v, %v; want\n%v and\n%v", was, is, err, asJSON(one), asJSON(other))
	}
	if reflect.ValueOf(was["status"]).Pointer() != reflect.ValueOf(is["status"]).Pointer() {
		t.Error("what is equal is not shared")
	}
	none := Item[*unstructured.Unstructured]{}
	if was, is, err = TreesOf(none, after); err != nil || was != nil || !reflect.DeepEqual(decoded(is), asJSON(other)) {
		t.Errorf("the trees are\n%v and\n%v, %v; want none and\n%v", was, is, err, asJSON(other))
	}
}
