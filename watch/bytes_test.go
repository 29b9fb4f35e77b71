// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/wire"
)

// message is what generated types have for protobuf.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// messageKinds are the built-in kinds that travel as protobuf.
func messageKinds() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for kind, typ := range scheme.Scheme.AllKnownTypes() {
		o, isMessage := reflect.TypeAssert[message](reflect.New(typ))
		if _, isObject := o.(metav1.Object); isMessage && isObject && kind.Version != runtime.APIVersionInternal {
			all = append(all, kind)
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// alone decodes an object from its JSON, by nothing of what is tested.
func alone(t *testing.T, o any) tree {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var content tree
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// mutate changes a tree in one place.
func mutate(dice *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		if len(names) == 0 || dice.Intn(8) == 0 {
			v["more"] = []any{int64(dice.Intn(3)), "x"}
			return v
		}
		name := names[dice.Intn(len(names))]
		if dice.Intn(8) == 0 {
			delete(v, name)
			return v
		}
		v[name] = mutate(dice, v[name])
		return v
	case []any:
		switch {
		case len(v) == 0 || dice.Intn(6) == 0:
			return append(v, tree{"name": "more"})
		case dice.Intn(6) == 0:
			return v[1:]
		case dice.Intn(6) == 0:
			dice.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
			return v
		}
		i := dice.Intn(len(v))
		v[i] = mutate(dice, v[i])
		return v
	}
	return []any{"another", int64(7), 2.5, true, nil, tree{}}[dice.Intn(6)]
}

// FuzzTheDifferenceOfBytes holds the differences of two states that were decoded together from their bytes, which looks only at what
// is not the same in both, against those of trees that were decoded each alone: for built-in kinds as protobuf and as JSON, and
// for trees of any shape, as custom kinds have them.
func FuzzTheDifferenceOfBytes(f *testing.F) {
	kinds := messageKinds()
	for kind := range kinds {
		f.Add(uint8(kind), int64(kind), int64(1))
		f.Add(uint8(kind), int64(kind), int64(2))
	}
	f.Fuzz(func(t *testing.T, number uint8, content, changes int64) {
		kind := kinds[int(number)%len(kinds)]
		typ := scheme.Scheme.AllKnownTypes()[kind]
		fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs), rand.NewSource(content), serializer.NewCodecFactory(scheme.Scheme))
		one, _ := reflect.TypeAssert[message](reflect.New(typ))
		fill.Fill(one)
		one.GetObjectKind().SetGroupVersionKind(kind)

		// A state with changes that the Go type can have, and one with any.
		dice := rand.New(rand.NewSource(changes))
		changed, custom := alone(t, one), alone(t, one)
		for range 1 + dice.Intn(4) {
			mutate(dice, changed)
			mutate(dice, custom)
		}
		other, _ := reflect.TypeAssert[message](reflect.New(typ))
		text, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal(text, other) // what can be read of it is changed, too
		other.GetObjectKind().SetGroupVersionKind(kind)
		before, after := overTheWire(t, one), overTheWire(t, other)
		rules, _ := diff.Builtin(event.Kind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind})
		want := diff.Compare(alone(t, before), alone(t, after), rules)

		messages, ok := wire.SchemaOf(typ)
		if !ok {
			t.Fatalf("%s has no schema", kind)
		}
		raw, err1 := before.Marshal()
		next, err2 := after.Marshal()
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		was, is, err := messages.DecodeTrees(raw, next)
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range []tree{was, is} {
			state["apiVersion"], state["kind"] = kind.ToAPIVersionAndKind()
		}
		compare(t, "protobuf", rules, was, is, want)

		was, is, err = wire.DecodeTrees(encodedJSON(t, before), encodedJSON(t, after))
		if err != nil {
			t.Fatal(err)
		}
		compare(t, "JSON", rules, was, is, want)

		was, is, err = wire.DecodeTrees(encodedJSON(t, one), encodedJSON(t, custom))
		if err != nil {
			t.Fatal(err)
		}
		compare(t, "a custom kind", diff.Generic(), was, is, diff.Compare(alone(t, one), alone(t, custom), diff.Generic()))
	})
}

// overTheWire returns an object as one who reads it gets it.
func overTheWire(t *testing.T, o message) message {
	t.Helper()
	raw, err := o.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	read, _ := reflect.TypeAssert[message](reflect.New(reflect.TypeOf(o).Elem()))
	if err := read.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	read.GetObjectKind().SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	return read
}

func encodedJSON(t *testing.T, o any) []byte {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// compare compares two trees, except fieldsV1, which are not decoded in some.
func compare(t *testing.T, how string, rules diff.Schema, was, is tree, want []diff.Difference) {
	t.Helper()
	isFields := func(d diff.Difference) bool {
		return len(d.Path) > 1 && d.Path[0].Name == "metadata" && d.Path[1].Name == "managedFields"
	}
	got := slices.DeleteFunc(diff.Compare(was, is, rules), isFields)
	want = slices.DeleteFunc(slices.Clone(want), isFields)
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("by %s: %v, want %v", how, got, want)
	}
}
