// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	stdjson "encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

type protobufObject interface {
	unmarshaler
	Marshal() ([]byte, error)
}

// builtinKinds are the kinds of client-go that speak protobuf, those of lists and options left out.
func builtinKinds() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for kind, typ := range scheme.Scheme.AllKnownTypes() {
		_, isObject := reflect.TypeAssert[metav1.Object](reflect.New(typ))
		if reflect.PointerTo(typ).Implements(reflect.TypeFor[protobufObject]()) && isObject && !strings.HasSuffix(kind.Kind, "List") && kind.Version != runtime.APIVersionInternal {
			all = append(all, kind)
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// treeByJSON decodes a message by the type's own methods, and what these write as JSON.
func treeByJSON(t *testing.T, typ reflect.Type, raw []byte) (map[string]any, error) {
	t.Helper()
	s := &Schema{typ: typ}
	return s.slow(raw)
}

func filler(seed int64) *randfill.Filler {
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs), rand.NewSource(seed), serializer.NewCodecFactory(scheme.Scheme))
}

// normal returns a tree with fieldsV1 decoded.
func normal(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			out[name] = normal(t, value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normal(t, v[i])
		}
		return out
	case stdjson.RawMessage:
		tree, err := decodeTree(v)
		if err != nil {
			t.Errorf("a fieldsV1 that is kept cannot be decoded: %v", err)
		}
		return tree
	}
	return v
}

// checkMessages holds the trees of two messages of a type against those of the type's own JSON.
func checkMessages(t *testing.T, typ reflect.Type, before, after []byte) {
	t.Helper()
	s, ok := SchemaOf(typ)
	if !ok {
		t.Fatalf("%v has no schema", typ)
	}
	was, err1 := treeByJSON(t, typ, before)
	is, err2 := treeByJSON(t, typ, after)
	for _, alone := range []struct {
		raw  []byte
		want map[string]any
		err  error
	}{{before, was, err1}, {after, is, err2}} {
		got, err := s.DecodeTree(alone.raw)
		if (err == nil) != (alone.err == nil) || err == nil && !reflect.DeepEqual(known(got), any(alone.want)) {
			t.Fatalf("%v of %x:\n%v, %v; want\n%v, %v", typ, alone.raw, got, err, alone.want, alone.err)
		}
	}
	gotWas, gotIs, err := s.DecodeTrees(before, after)
	if err1 != nil || err2 != nil {
		if err == nil {
			t.Fatalf("%v of %x and %x: no error, want %v, %v", typ, before, after, err1, err2)
		}
		return
	}
	if err != nil || !reflect.DeepEqual(normal(t, known(gotWas)), any(was)) || !reflect.DeepEqual(normal(t, known(gotIs)), any(is)) {
		t.Fatalf("%v of %x and %x:\n%v and\n%v, %v; want\n%v and\n%v", typ, before, after, gotWas, gotIs, err, was, is)
	}
}

// known returns a tree without the fields that the type does not have.
func known(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			if !strings.HasPrefix(name, "(field ") {
				out[name] = known(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = known(v[i])
		}
		return out
	}
	return v
}

// Every kind of client-go has a schema, and its messages are the trees of its JSON: filled at random, and changed at random.
func TestMessagesAreTheTreesOfTheirJSON(t *testing.T) {
	all := builtinKinds()
	if len(all) < 80 {
		t.Fatalf("only %d kinds", len(all))
	}
	t.Run("fast", func(t *testing.T) { // and not by the type's own methods
		fast := 0
		for i, kind := range all {
			typ := scheme.Scheme.AllKnownTypes()[kind]
			one, _ := reflect.TypeAssert[protobufObject](reflect.New(typ))
			filler(int64(i)).Fill(one)
			s, _ := SchemaOf(typ)
			p, _ := messageTrees.Get().(*messageTree)
			if p.message(s, marshaled(t, one), map[string]any{}, 0) {
				fast++
			}
			p.close()
		}
		if fast < len(all)*9/10 {
			t.Errorf("%d of %d kinds are decoded here", fast, len(all))
		}
	})
	for _, kind := range all {
		t.Run(kind.Group+"/"+kind.Version+" "+kind.Kind, func(t *testing.T) {
			t.Parallel()
			typ := scheme.Scheme.AllKnownTypes()[kind]
			for seed := range int64(6) {
				fill := filler(seed)
				one, _ := reflect.TypeAssert[protobufObject](reflect.New(typ))
				fill.Fill(one)
				other, _ := one.(runtime.Object).DeepCopyObject().(protobufObject)
				changeAt(rand.New(rand.NewSource(seed)), fill, reflect.ValueOf(other).Elem(), 0)
				empty, _ := reflect.TypeAssert[protobufObject](reflect.New(typ))
				checkMessages(t, typ, marshaled(t, one), marshaled(t, other))
				checkMessages(t, typ, marshaled(t, other), marshaled(t, one))
				checkMessages(t, typ, marshaled(t, empty), marshaled(t, one))
				checkMessages(t, typ, marshaled(t, one), nil)
			}
		})
	}
}

func marshaled(t *testing.T, o protobufObject) []byte {
	t.Helper()
	raw, err := o.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// changeAt changes an object in one place.
func changeAt(dice *rand.Rand, fill *randfill.Filler, v reflect.Value, depth int) {
	switch v.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Struct:
		if n := v.NumField(); n > 0 && depth < 10 && v.Type().PkgPath() != "time" {
			if f := v.Field(dice.Intn(n)); f.CanSet() {
				changeAt(dice, fill, f, depth+1)
			}
			return
		}
	case reflect.Pointer:
		if !v.IsNil() && dice.Intn(4) > 0 {
			changeAt(dice, fill, v.Elem(), depth+1)
			return
		}
	case reflect.Slice:
		if v.Len() > 0 {
			switch dice.Intn(4) {
			case 0:
				v.Set(v.Slice(1, v.Len()))
			case 1:
				v.Set(reflect.Append(v, v.Index(0)))
			default:
				changeAt(dice, fill, v.Index(dice.Intn(v.Len())), depth+1)
			}
			return
		}
	}
	if v.CanSet() && v.CanAddr() {
		fill.Fill(v.Addr().Interface())
	}
}

// FuzzMessageTrees has bytes that no server sends decoded as by the type's own methods.
func FuzzMessageTrees(f *testing.F) {
	types := []reflect.Type{}
	for _, kind := range builtinKinds() {
		types = append(types, scheme.Scheme.AllKnownTypes()[kind])
	}
	for i, typ := range types {
		one, _ := reflect.TypeAssert[protobufObject](reflect.New(typ))
		fill := filler(int64(i))
		fill.Fill(one)
		raw, err := one.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), raw, raw)
		f.Add(uint8(i), raw, raw[:len(raw)/2])
	}
	f.Fuzz(func(t *testing.T, kind uint8, before, after []byte) {
		checkMessages(t, types[int(kind)%len(types)], before, after)
	})
}

// Equal parts are decoded once, and a field that is newer than the type is there.
func TestMessagesShareWhatIsEqual(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:a":{}}`)}}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Command: []string{"run"}}, {Name: "y"}}, Tolerations: []corev1.Toleration{{Key: "k"}}},
	}
	other := pod.DeepCopy()
	other.Spec.Containers[1].Image = "z"
	after := append(marshaled(t, other), 0xf8, 0x07, 0x05) // a field 127
	s, _ := SchemaOf(reflect.TypeFor[corev1.Pod]())
	was, is, err := s.DecodeTrees(marshaled(t, pod), after)
	if err != nil {
		t.Fatal(err)
	}
	same := func(path ...any) bool {
		var a, b any = was, is
		for _, step := range path {
			if name, ok := step.(string); ok {
				a, b = a.(map[string]any)[name], b.(map[string]any)[name]
			} else {
				a, b = a.([]any)[step.(int)], b.([]any)[step.(int)]
			}
		}
		return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	}
	for _, c := range []struct {
		path []any
		want bool
	}{
		{[]any{"metadata"}, true}, {[]any{"spec"}, false}, {[]any{"spec", "tolerations"}, true}, {[]any{"spec", "containers"}, false},
		{[]any{"spec", "containers", 0}, true}, {[]any{"spec", "containers", 1}, false}, {[]any{"status"}, true},
	} {
		if got := same(c.path...); got != c.want {
			t.Errorf("%v are the same: %v", c.path, got)
		}
	}
	if got := is["(field 127)"]; got != "+AcF" {
		t.Errorf("the field that is not known is %v in %v", got, fmt.Sprint(is))
	}
	fields := was["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)["fieldsV1"]
	if raw, ok := fields.(stdjson.RawMessage); !ok || string(raw) != `{"f:a":{}}` {
		t.Errorf("the fieldsV1 are %#v", fields)
	}
}

// BenchmarkTwoStates decodes two states of a Pod of which an annotation and an image differ.
func BenchmarkTwoStates(b *testing.B) {
	one := new(corev1.Pod)
	fill := filler(1)
	fill.Fill(one)
	other := one.DeepCopy()
	one.Annotations, other.Annotations = map[string]string{"a": "1"}, map[string]string{"a": "2"}
	before, err1 := one.Marshal()
	after, err2 := other.Marshal()
	if err1 != nil || err2 != nil {
		b.Fatal(err1, err2)
	}
	s, _ := SchemaOf(reflect.TypeFor[corev1.Pod]())
	b.SetBytes(int64(len(before)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.DecodeTrees(before, after); err != nil {
			b.Fatal(err)
		}
	}
}
