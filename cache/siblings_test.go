// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// managedPod is a Pod as a controller makes it. Ten follow one another.
func managedPod(n int) *corev1.Pod {
	p := realPod(n)
	yes := true
	p.OwnerReferences[0].Controller = &yes
	p.UID = types.UID(fmt.Sprintf("%08x-1234-4abc-8def-0123456789ab", n))
	return p
}

// trainedArchive is an archive of Pods that has its dictionary, and no objects.
func trainedArchive(t testing.TB) *archive {
	t.Helper()
	a := newArchive(podContent())
	var all []*entry
	for n := 0; a.forms[wire.Protobuf].dict == nil; n++ {
		all = append(all, mustEntry(t, a, realPod(n)))
	}
	for _, e := range all {
		a.drop(e)
	}
	return a
}

func TestTheObjectsOfAControllerAreKeptAsPatchesOfOneOfThem(t *testing.T) {
	a := trainedArchive(t)
	const pods = 200
	var entries []*entry
	whole, patches := 0, 0
	for n := range pods {
		e := mustEntry(t, a, managedPod(n))
		entries = append(entries, e)
		if e.packing != patched {
			whole += len(e.body())
			continue
		}
		patches += len(e.body())
		if base := e.form.base; base.packing == patched || base.family.owners[0].UID != e.family.owners[0].UID {
			t.Errorf("%s is a patch of %s", e.key(), base.key())
		}
	}
	if len(a.siblings) != pods/10 {
		t.Errorf("%d groups of siblings, want %d", len(a.siblings), pods/10)
	}
	if whole, patches := whole/(pods/10), patches/(pods-pods/10); patches > whole/2 {
		t.Errorf("a patch takes %d bytes, a base %d", patches, whole)
	}
	// Many readers at once.
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for n, e := range entries {
				reads(t, e, managedPod(n))
			}
		})
	}
	readers.Wait()
	for n, e := range entries {
		if text, err := e.textAt(wire.NodeName); err != nil || text != managedPod(n).Spec.NodeName {
			t.Errorf("%s is on %q, %v", e.key(), text, err)
		}
		if e.rawSize() == 0 || !a.holds(e, must(frameOf(managedPod(n)))) {
			t.Errorf("%s is not said to be what it was made of", e.key())
		}
		a.drop(e)
	}
	if len(a.siblings) != 0 || a.raw != 0 || a.stored != 0 {
		t.Errorf("nothing is left, but %d groups of siblings and %d of %d bytes", len(a.siblings), a.stored, a.raw)
	}
	for n, e := range entries { // a snapshot may have them still
		reads(t, e, managedPod(n))
	}
}

func must(f *frame, err error) *frame {
	if err != nil {
		panic(err)
	}
	return f
}

func TestSiblingsWithLabelsOfTheirOwnArePatchesToo(t *testing.T) {
	a := trainedArchive(t)
	for n := range 10 { // as the Pods of a StatefulSet
		p := managedPod(n)
		p.Labels["apps.kubernetes.io/pod-index"] = fmt.Sprint(n)
		e := mustEntry(t, a, p)
		if (e.packing == patched) != (n > 0) {
			t.Errorf("packing %d of sibling %d", e.packing, n)
		}
		reads(t, e, p)
	}
	if len(a.siblings) != 1 {
		t.Errorf("%d groups of siblings", len(a.siblings))
	}
}

func TestCustomObjectsOfAControllerArePatchesToo(t *testing.T) {
	gadget := func(n int) object.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Gadget",
			"metadata": map[string]any{
				"namespace": "ns", "name": fmt.Sprint("g", n), "uid": fmt.Sprint("u", n), "resourceVersion": fmt.Sprint(n + 1),
				"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Set", "name": "s", "uid": "s", "controller": true}},
			},
			"spec": map[string]any{"size": int64(n), "text": strings.Repeat("of some length ", 12)},
		}}
	}
	a := newArchive(&content{gvk: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"},
		typ: reflect.TypeFor[*unstructured.Unstructured](), new: func() object.Object { return new(unstructured.Unstructured) }})
	n := 0
	for ; a.forms[wire.JSON].dict == nil; n++ {
		mustEntry(t, a, gadget(n))
	}
	mustEntry(t, a, gadget(n))
	e := mustEntry(t, a, gadget(n+1))
	if e.packing != patched {
		t.Errorf("packing %d", e.packing)
	}
	reads(t, e, gadget(n+1))
}

// Siblings that have changed their nature, as Pods do when they run, are patches of one that has
// changed as well.
func TestAnObjectUnlikeItsSiblingsIsTheNextBase(t *testing.T) {
	a := trainedArchive(t)
	other := func(n int) *corev1.Pod {
		p := managedPod(n)
		random := rand.New(rand.NewPCG(7, 7))
		p.Annotations["example.com/notes"] = ""
		for range 100 {
			p.Annotations["example.com/notes"] += fmt.Sprint(random.Uint64(), " ")
		}
		return p
	}
	first := mustEntry(t, a, managedPod(0))
	unlike := mustEntry(t, a, other(1))
	if unlike.packing == patched {
		t.Fatalf("%d bytes of a patch for %d", len(unlike.body()), unlike.rawSize())
	}
	next := mustEntry(t, a, other(2))
	if next.packing != patched || next.form.base != unlike {
		t.Errorf("packing %d of the next", next.packing)
	}
	reads(t, first, managedPod(0))
	reads(t, unlike, other(1))
	reads(t, next, other(2))
}

// A base with an old dictionary would keep it for ever.
func TestABaseWithAnOldDictionaryIsReplaced(t *testing.T) {
	a := trainedArchive(t)
	before := mustEntry(t, a, managedPod(0))
	old := a.forms[wire.Protobuf]
	a.forms[wire.Protobuf] = &form{content: old.content, encoding: old.encoding, dict: old.dict}
	base, patch := mustEntry(t, a, managedPod(1)), mustEntry(t, a, managedPod(2))
	if base.form != a.forms[wire.Protobuf] || patch.packing != patched || patch.form.base != base {
		t.Errorf("packing %d of the first with the new dictionary, %d of the second", base.packing, patch.packing)
	}
	for n, e := range []*entry{before, base, patch} {
		reads(t, e, managedPod(n))
	}
}

// Whatever happens to the bytes that objects share, no object is read as another.
func TestADamagedBaseOrDictionaryIsAnError(t *testing.T) {
	a := trainedArchive(t)
	base, patch := mustEntry(t, a, managedPod(0)), mustEntry(t, a, managedPod(1))
	if base.packing != compressed || patch.packing != patched {
		t.Fatalf("packing %d and %d", base.packing, patch.packing)
	}
	want := map[bool]string{}
	for patched, e := range map[bool]*entry{false: base, true: patch} {
		raw, err := e.unpack(new([]byte))
		if err != nil {
			t.Fatal(err)
		}
		want[patched] = string(raw)
	}
	check := func(e *entry, what string, at int) {
		raw, err := e.unpack(new([]byte))
		if err == nil && string(raw) != want[e.packing == patched] {
			t.Fatalf("%s is damaged at byte %d, and a body of %d bytes was read", what, at, len(raw))
		}
		_ = e.rawSize()
	}
	damaged := func(e *entry, at int, bits byte) *entry {
		text := []byte(e.text)
		text[len(text)-len(e.body())+at] ^= bits
		return &entry{family: e.family, form: e.form, text: string(text), name: e.name, uid: e.uid, uuid: e.uuid,
			version: e.version, numbers: e.numbers, times: e.times, packing: e.packing}
	}
	for _, bits := range []byte{1, 0x80, 0xff} {
		for at := range len(base.body()) {
			bad := damaged(base, at, bits)
			check(bad, "a base", at)
			of := damaged(patch, 0, 0)
			of.form = &form{content: patch.form.content, encoding: patch.form.encoding, base: bad}
			check(of, "the base of a patch", at)
		}
		for at := range len(patch.body()) {
			check(damaged(patch, at, bits), "a patch", at)
		}
	}
	another := damaged(base, 0, 0)
	another.form = &form{content: base.form.content, encoding: base.form.encoding, dict: learn([]*entry{patch, patch, patch})}
	check(another, "a dictionary", 0)
	cut := damaged(base, 0, 0)
	cut.text = cut.text[:len(cut.text)-len(cut.body())+2]
	check(cut, "a body that is cut", 2)
}

func TestAUIDIsReadAsItWasSent(t *testing.T) {
	a := newArchive(podContent())
	for text, packs := range map[types.UID]bool{
		"3f0c1d2e-4b5a-4687-9a0b-c1d2e3f40516":  true,
		"00000000-0000-0000-0000-000000000000":  true,
		"3F0C1D2E-4B5A-4687-9A0B-C1D2E3F40516":  false, // another text
		"3f0c1d2e04b5a-4687-9a0b-c1d2e3f40516":  false,
		"3f0c1d2e-4b5a-4687-9a0b-c1d2e3f4051":   false,
		"3f0c1d2e-4b5a-4687-9a0b-c1d2e3f4051g":  false,
		"3f0c1d2e-4b5a-4687-9a0b-c1d2e3f405167": false,
		"0123456789abcdef":                      false, // as long as the content of a UUID
		"":                                      false,
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: text, ResourceVersion: "1"}}
		e := mustEntry(t, a, p)
		reads(t, e, p)
		if e.uuid != packs || e.meta().UID != text || !e.identified([]byte(text)) || e.identified([]byte(text+"0")) {
			t.Errorf("%q is read as %q, packed: %v", text, e.meta().UID, e.uuid)
		}
	}
	// The content of a UUID may be the text of another UID.
	content, ok := appendUUID(nil, []byte("3f0c1d2e-4b5a-4687-9a0b-c1d2e3f40516"))
	if !ok {
		t.Fatal("no UUID")
	}
	one := mustEntry(t, a, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "3f0c1d2e-4b5a-4687-9a0b-c1d2e3f40516", ResourceVersion: "1"}})
	other := &entry{family: one.family, text: "a" + string(content) + "1", name: 1, uid: uuidSize, version: 1}
	if one.sameObject(other) || other.identified([]byte(one.identity())) || !one.sameObject(one) {
		t.Error("two UIDs are taken for one")
	}
}
