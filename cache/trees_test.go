// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

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
