// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	kjson "sigs.k8s.io/json"

	"github.com/setpoint-io/setpoint/watch/event"
)

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &v); err != nil {
		t.Fatalf("parsing %s: %v", text, err)
	}
	return v
}

func TestCompare(t *testing.T) {
	pod, _ := Builtin(event.Kind{Version: "v1", Kind: "Pod"})
	service, _ := Builtin(event.Kind{Version: "v1", Kind: "Service"})
	for _, c := range []struct {
		name     string
		schema   Schema
		old, new string
		want     []string
	}{
		{"nothing", pod, `{"a":1}`, `{"a":1}`, nil},
		{"a field changed", pod, `{"spec":{"nodeName":"a"}}`, `{"spec":{"nodeName":"b"}}`, []string{"replace spec.nodeName a → b"}},
		{"a subtree added is one difference", pod, `{"spec":{}}`, `{"spec":{"securityContext":{"runAsUser":1,"fsGroup":2}}}`,
			[]string{"add spec.securityContext map[fsGroup:2 runAsUser:1]"}},
		{"a subtree removed is one difference", pod, `{"status":{"a":{"b":1}}}`, `{}`, []string{"remove status map[a:map[b:1]]"}},
		{"names with dots are in brackets", pod, `{"metadata":{"labels":{}}}`, `{"metadata":{"labels":{"app.kubernetes.io/name":"web"}}}`,
			[]string{"add metadata.labels[app.kubernetes.io/name] web"}},
		{"names that look like positions are quoted", Schema{}, `{"data":{}}`, `{"data":{"2":"x","a]b":"y","":"z"}}`,
			[]string{`add data[""] z`, `add data["2"] x`, `add data["a]b"] y`}},
		{"containers by name, wherever they stand", pod,
			`{"spec":{"containers":[{"name":"web","image":"web:1"}]}}`,
			`{"spec":{"containers":[{"name":"proxy","image":"p"},{"name":"web","image":"web:2"}]}}`,
			[]string{"add spec.containers[name=proxy] map[image:p name:proxy]", "replace spec.containers[name=web].image web:1 → web:2"}},
		{"container ports by port and protocol", pod,
			`{"spec":{"containers":[{"name":"dns","ports":[{"containerPort":53,"protocol":"UDP"},{"containerPort":53,"protocol":"TCP"}]}]}}`,
			`{"spec":{"containers":[{"name":"dns","ports":[{"containerPort":53,"protocol":"UDP","name":"dns"},{"containerPort":53,"protocol":"TCP"}]}]}}`,
			[]string{"add spec.containers[name=dns].ports[containerPort=53,protocol=UDP].name dns"}},
		{"service ports by port and protocol", service,
			`{"spec":{"ports":[{"port":80,"protocol":"TCP","targetPort":1}]}}`, `{"spec":{"ports":[{"port":80,"protocol":"TCP","targetPort":"http"}]}}`,
			[]string{"replace spec.ports[port=80,protocol=TCP].targetPort 1 → http"}},
		{"an optional key that is absent", service, `{"spec":{"ports":[{"port":80}]}}`, `{"spec":{"ports":[{"port":80,"name":"http"}]}}`,
			[]string{"add spec.ports[port=80].name http"}},
		{"volume mounts by path", pod,
			`{"spec":{"containers":[{"name":"a","volumeMounts":[{"mountPath":"/x","name":"v"}]}]}}`,
			`{"spec":{"containers":[{"name":"a","volumeMounts":[{"mountPath":"/x","name":"w"}]}]}}`,
			[]string{"replace spec.containers[name=a].volumeMounts[mountPath=/x].name v → w"}},
		{"conditions by type", pod,
			`{"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"Initialized","status":"True"}]}}`,
			`{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Initialized","status":"True"}]}}`,
			[]string{"replace status.conditions[type=Ready].status False → True"}},
		{"owners by uid", Generic(), `{"metadata":{"ownerReferences":[{"uid":"u","name":"a"}]}}`, `{"metadata":{"ownerReferences":[{"uid":"u","name":"a","controller":true}]}}`,
			[]string{"add metadata.ownerReferences[uid=u].controller true"}},
		{"tolerations by their shape", pod,
			`{"spec":{"tolerations":[{"key":"a","tolerationSeconds":300},{"key":"b"}]}}`, `{"spec":{"tolerations":[{"key":"a","tolerationSeconds":30},{"key":"b"}]}}`,
			[]string{"replace spec.tolerations[key=a].tolerationSeconds 300 → 30"}},
		{"a key twice is no key", pod,
			`{"spec":{"containers":[{"name":"a","env":[{"name":"X","value":"1"},{"name":"X","value":"2"}]}]}}`,
			`{"spec":{"containers":[{"name":"a","env":[{"name":"X","value":"1"},{"name":"X","value":"3"}]}]}}`,
			[]string{"replace spec.containers[name=a].env[1].value 2 → 3"}},
		{"an order that changed", pod,
			`{"spec":{"initContainers":[{"name":"a"},{"name":"b"},{"name":"c"}]}}`, `{"spec":{"initContainers":[{"name":"b"},{"name":"a"},{"name":"d"}]}}`,
			[]string{"replace spec.initContainers[order] [a b] → [b a]", "remove spec.initContainers[name=c] map[name:c]", "add spec.initContainers[name=d] map[name:d]"}},
		{"finalizers are a set", Generic(), `{"metadata":{"finalizers":["a","b","c"]}}`, `{"metadata":{"finalizers":["b","c","d"]}}`,
			[]string{"remove metadata.finalizers[0] a", "add metadata.finalizers[2] d"}},
		{"arguments are a sequence", pod,
			`{"spec":{"containers":[{"name":"a","args":["--v=1","--b","--c"]}]}}`, `{"spec":{"containers":[{"name":"a","args":["--v=2","--b","--x","--c"]}]}}`,
			[]string{"replace spec.containers[name=a].args[0] --v=1 → --v=2", "add spec.containers[name=a].args[2] --x"}},
		{"one argument less moves no other", pod, `{"spec":{"args":["a","b","c","d"]}}`, `{"spec":{"args":["b","c","d"]}}`, []string{"remove spec.args[0] a"}},
		{"null, absent and empty differ", Schema{}, `{"a":null,"b":{},"c":[],"d":null}`, `{"b":null,"c":{},"d":[],"e":null}`,
			[]string{"remove a <nil>", "replace b map[] → <nil>", "replace c [] → map[]", "replace d <nil> → []", "add e <nil>"}},
		{"numbers are equal by value", Schema{}, `{"a":1,"b":1.5,"c":0}`, `{"a":1.0,"b":1.5,"c":-0.0}`, nil},
		{"large numbers keep their last digit", Schema{}, `{"a":9007199254740993}`, `{"a":9007199254740992}`, []string{"replace a 9007199254740993 → 9007199254740992"}},
		{"a type that changed", Schema{}, `{"a":"1","b":[1],"c":{"d":1}}`, `{"a":1,"b":{"0":1},"c":true}`,
			[]string{"replace a 1 → 1", "replace b [1] → map[0:1]", "replace c map[d:1] → true"}},
		{"a list of lists", Schema{}, `{"a":[[1,2],[3]]}`, `{"a":[[1,2],[3,4]]}`, []string{"add a[1][1] 4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := lines(Compare(parse(t, c.old), parse(t, c.new), c.schema))
			if want := strings.Join(c.want, "\n"); strings.TrimSuffix(got, "\n") != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestCompareOfNil(t *testing.T) {
	if found := Compare(nil, map[string]any{}, Schema{}); len(found) != 0 {
		t.Errorf("nil and empty: %v", found)
	}
	if got := lines(Compare(nil, map[string]any{"a": nil}, Schema{})); got != "add a <nil>\n" {
		t.Errorf("got %s", got)
	}
	nan := map[string]any{"a": math.NaN(), "b": []any{math.NaN()}}
	if found := Compare(nan, map[string]any{"a": math.NaN(), "b": []any{math.NaN()}}, Schema{}); len(found) != 0 {
		t.Errorf("not a number is what it was: %v", found)
	}
}

func TestCompareIsBounded(t *testing.T) {
	deep := func(leaf any) map[string]any {
		v := leaf
		for range 5000 {
			v = []any{v}
		}
		return map[string]any{"a": v}
	}
	found := Compare(deep(int64(1)), deep(int64(2)), Schema{})
	if len(found) != 1 || len(found[0].Path) != maxDepth {
		t.Errorf("%d differences", len(found))
	}
	long := func(first int64) map[string]any {
		var l []any
		for i := range int64(100_000) {
			l = append(l, first+i*2)
		}
		return map[string]any{"a": l}
	}
	if found := Compare(long(0), long(1), Schema{}); len(found) != 100_000 {
		t.Errorf("%d differences of two long lists with nothing in common", len(found))
	}
}

// value draws a tree that looks like objects do: few names, lists of all sorts, scalars
// that often are the same.
func value(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.SampledFrom([]string{"", "a", "b", "c", "x.y/z"}), func(s string) any { return s }),
		rapid.Map(rapid.Int64Range(-1, 2), func(i int64) any { return i }),
		rapid.Map(rapid.SampledFrom([]float64{0, 1, 1.5, 1e300}), func(f float64) any { return f }),
	)
	if depth == 0 {
		return scalar
	}
	keyed := rapid.Custom(func(t *rapid.T) any {
		key := rapid.SampledFrom([]string{"name", "type", "containerPort"}).Draw(t, "key")
		list := []any{}
		for _, k := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4).Draw(t, "keys") {
			m := tree(depth-1).Draw(t, "element")
			m[key] = k
			list = append(list, m)
		}
		return list
	})
	return rapid.OneOf(scalar, keyed,
		rapid.Map(rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) }), 0, 4), func(l []any) any { return l }),
		rapid.Map(tree(depth-1), func(m map[string]any) any { return m }),
	)
}

func tree(depth int) *rapid.Generator[map[string]any] {
	names := rapid.SampledFrom([]string{"spec", "metadata", "finalizers", "containers", "name", "a", "b", "c.d", "set", "map", "1"})
	return rapid.MapOfN(names, rapid.Deferred(func() *rapid.Generator[any] { return value(depth) }), 0, 5)
}

// schemas are those that the properties are shown for.
func schemas(t testing.TB) []Schema {
	pod, ok := Builtin(event.Kind{Version: "v1", Kind: "Pod"})
	if !ok {
		t.Fatal("no schema for pods")
	}
	everywhere := &node{fields: map[string]*node{}}
	everywhere.each = everywhere
	everywhere.fields["set"] = &node{set: true}
	everywhere.fields["map"] = &node{keys: []string{"name", "type"}, each: everywhere}
	return []Schema{{}, Generic(), pod, {root: everywhere}}
}

// hold shows the properties for one pair.
func hold(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, from, to map[string]any, s Schema) {
	t.Helper()
	found := Compare(from, to, s)
	if got := apply(from, found); !Equal(got, orEmpty(to)) {
		t.Fatalf("the differences lead to\n%v\nand not to\n%v:\n%s", got, to, lines(found))
	}
	if (len(found) == 0) != Equal(orEmpty(from), orEmpty(to)) {
		t.Fatalf("%d differences of\n%v\n%v", len(found), from, to)
	}
	if !slices.IsSortedFunc(found, compareDifferences) {
		t.Fatalf("not in order:\n%s", lines(found))
	}
	for i := 1; i < len(found); i++ {
		if compareDifferences(found[i-1], found[i]) == 0 {
			t.Fatalf("two at one place:\n%s", lines(found))
		}
	}
	seen := map[string]bool{}
	for _, d := range found {
		if seen[d.String()] {
			t.Fatalf("%s twice:\n%s", d, lines(found))
		}
		seen[d.String()] = true
	}
	if again := Compare(from, to, s); lines(again) != lines(found) {
		t.Fatalf("once\n%s and once\n%s", lines(found), lines(again))
	}
	if found := Compare(to, to, s); len(found) != 0 {
		t.Fatalf("a tree differs from itself:\n%s", lines(found))
	}
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

func TestDifferencesLeadFromOldToNew(t *testing.T) {
	all := schemas(t)
	rapid.Check(t, func(t *rapid.T) {
		from, to := tree(4).Draw(t, "from"), tree(4).Draw(t, "to")
		s := rapid.SampledFrom(all).Draw(t, "schema")
		hold(t, from, to, s)
		// What differs in a place or two is more like what happens.
		near, _ := edited(t, from, 0).(map[string]any)
		hold(t, from, near, s)
	})
}

// edited returns the tree with some places changed.
func edited(t *rapid.T, v any, depth int) any {
	if depth > 0 && rapid.IntRange(0, 9).Draw(t, "change") == 0 {
		return value(1).Draw(t, "changed")
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			if rapid.IntRange(0, 9).Draw(t, "drop") > 0 {
				out[k] = edited(t, v[k], depth+1)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, e := range v {
			if rapid.IntRange(0, 9).Draw(t, "drop") > 0 {
				out = append(out, edited(t, e, depth+1))
			}
		}
		if len(out) > 1 && rapid.IntRange(0, 4).Draw(t, "swap") == 0 {
			out[0], out[len(out)-1] = out[len(out)-1], out[0]
		}
		return out
	}
	return v
}

func TestPositionsLeadToTheValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := tree(4).Draw(t, "from"), tree(4).Draw(t, "to")
		for _, d := range Compare(from, to, Generic()) {
			if d.Path[len(d.Path)-1].Kind == Order {
				continue
			}
			if d.Op != event.Add && !Equal(at(from, d.Path, false), d.From) {
				t.Fatalf("%s is %v in the old tree, and not %v", d.Path, at(from, d.Path, false), d.From)
			}
			if d.Op != event.Remove && !Equal(at(to, d.Path, true), d.To) {
				t.Fatalf("%s is %v in the new tree, and not %v", d.Path, at(to, d.Path, true), d.To)
			}
		}
	})
}

func at(v any, p Path, isNew bool) any {
	for _, e := range p {
		if e.Kind == Field {
			v = v.(map[string]any)[e.Name]
			continue
		}
		i := e.Old
		if isNew {
			i = e.New
		}
		v = v.([]any)[i]
	}
	return v
}

func FuzzCompare(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"spec":{"containers":[{"name":"a","args":["x","y"]}]}}`, `{"spec":{"containers":[{"name":"b"},{"name":"a","args":["y"]}]}}`},
		{`{"metadata":{"finalizers":["a","a"],"ownerReferences":[{"uid":1},{"uid":"1"}]}}`, `{"metadata":{"finalizers":["a"],"ownerReferences":[]}}`},
		{`{"a":[1,2.0,[3],{"name":"x"}],"set":[1,2],"map":[{"name":"a"}]}`, `{"a":[2,1,null],"set":[2,1,1e99],"map":[{"type":"a"}]}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	all := schemas(f)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var from, to map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts(a, &from) != nil || kjson.UnmarshalCaseSensitivePreserveInts(b, &to) != nil {
			return
		}
		before, _ := json.Marshal([]any{from, to})
		for _, s := range all {
			hold(t, from, to, s)
		}
		if after, _ := json.Marshal([]any{from, to}); !reflect.DeepEqual(before, after) {
			t.Fatal("the trees were written to")
		}
	})
}
