// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
	kjson "sigs.k8s.io/json"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/observe"
)

func TestParseRule(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"data.password", "want a kind, a colon and a path"},
		{":data", "no kind before the colon"},
		{"apps/deployments:spec", `"apps/deployments" is no kind`},
		{"config*:data", "is no kind"},
		{"pods:", "the path is empty"},
		{"pods:.spec", "at character 1: want the name of a field"},
		{"pods:spec..a", "at character 6: want the name"},
		{"pods:spec.", "at character 6: want"},
		{"pods:spec[0]", "[0] is a position, and positions move; use [*]"},
		{"pods:spec[]", "the bracket is empty"},
		{"pods:spec[a", "the bracket is not closed"},
		{"pods:spec[a=b", "the bracket is not closed"},
		{`pods:spec["a]`, "a quote is not closed"},
		{`pods:spec["a"b]`, "want a closing bracket"},
		{`pods:spec[a="b"c]`, "the bracket is not closed"},
		{"pods:spec[a]b", "want a dot or a bracket"},
		{"pods:spec[a=b,c]", `the key "c" has no value`},
		{"pods:*", "a path begins with the name of a field"},
		{"pods:[*].a", "a path begins with the name of a field"},
		{"pods:kind", "kind says which object it is"},
		{"pods:metadata", "only labels and annotations"},
		{"pods:metadata.name", "only labels and annotations"},
		{"pods:metadata.*", "only labels and annotations"},
	} {
		_, err := observe.ParseRule(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.text, err, c.want)
		}
	}
	r, err := observe.ParseRule("Widgets.Example.com: spec.token")
	if err != nil || !r.Matches(widgets) || r.Matches(pods) {
		t.Errorf("%v, %v", r, err)
	}
	if (observe.Rule{}).Matches(pods) {
		t.Error("the zero Rule matches")
	}
}

var tag = regexp.MustCompile(`\(hidden [0-9a-f]{6}\)`)

func TestHidden(t *testing.T) {
	for _, c := range []struct {
		name     string
		kind     event.Kind
		hide     []string
		old, new string
		want     string // of the fields, tags as #
	}{
		{"a value of a Secret", secrets, nil, `{"data":{"a":"CANARY"}}`, `{"data":{"a":"CANARY2","b":"eA=="}}`, `replace data.a # → #; add data.b #`},
		{"all of a Secret", secrets, nil, `{"type":"Opaque"}`, `{"type":"Opaque","data":{"a":"CANARY"},"stringData":{"b":"CANARY"}}`,
			`add data map[a:#]; add stringData map[b:#]`},
		{"what is not hidden of it", secrets, nil, `{"type":"a"}`, `{"type":"b"}`, `replace type a → b`},
		{"data of another type", secrets, nil, `{"data":{"a":"CANARY"}}`, `{"data":"CANARY"}`, `replace data map[a:#] → #`},
		{"data that is a list", secrets, nil, `{"data":["CANARY1"]}`, `{"data":["CANARY2",{"a":"CANARY"}]}`, `replace data # → #`},
		{"values below values", secrets, nil, `{"data":{"a":{"CANARY":"CANARY"}}}`, `{"data":{"a":{"CANARY":"x"}}}`, `replace data.a # → #`},
		{"the copy of a Secret", secrets, nil, `{"metadata":{"annotations":{"a":"b"}}}`, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"CANARY","a":"c"}}}`,
			`replace metadata.annotations.a b → c; add metadata.annotations[kubectl.kubernetes.io/last-applied-configuration] #`},
		{"annotations of another type", secrets, nil, `{"metadata":{"annotations":["CANARY"]}}`, `{"metadata":{"annotations":"CANARY"}}`, `replace metadata.annotations # → #`},
		{"a rule", configs, []string{"configmaps:data.password"}, `{"data":{"password":"CANARY","a":"1"}}`, `{"data":{"password":"CANARY2","a":"2"}}`,
			`replace data.a 1 → 2; replace data.password # → #`},
		{"a rule hides the copies", widgets, []string{"widgets.example.com:spec.connection.token"},
			`{"metadata":{"annotations":{}},"spec":{"connection":{"token":"CANARY"}}}`,
			`{"metadata":{"annotations":{"kapp.k14s.io/original":"CANARY"}},"spec":{"connection":{"token":"CANARY"}}}`, `add metadata.annotations[kapp.k14s.io/original] #`},
		{"a rule with two keys", widgets, []string{"widgets.example.com:spec.ports[port=80,protocol=TCP].token"},
			`{"spec":{"ports":[{"id":"a","port":80,"protocol":"TCP","token":"CANARY"},{"id":"b","port":80,"protocol":"UDP","token":"1"},{"id":"c","port":80,"token":"3"}]}}`,
			`{"spec":{"ports":[{"id":"a","port":80,"protocol":"TCP","token":"CANARY2"},{"id":"b","port":80,"protocol":"UDP","token":"2"},{"id":"c","port":80,"token":"4"}]}}`,
			`replace spec.ports[id=a].token # → #; replace spec.ports[id=b].token 1 → 2; replace spec.ports[id=c].token 3 → 4`},
		{"a rule for others", configs, []string{"widgets.example.com:data.a"}, `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`, `replace data.a 1 → 2`},
		{"a rule for all", configs, []string{"*:metadata.annotations[example.com/token]"}, `{"metadata":{"annotations":{"example.com/token":"CANARY"}}}`,
			`{"metadata":{"annotations":{"example.com/token":"CANARY2"}}}`, `replace metadata.annotations[example.com/token] # → #`},
		{"several differences below one hidden value", widgets, []string{"widgets.example.com:spec.connection"},
			`{"spec":{"connection":{"CANARY1":"a","CANARY2":{"b":"CANARY"}}}}`, `{"spec":{"connection":{"CANARY1":"b","CANARY2":{"c":"CANARY"}}}}`, `replace spec.connection # → #`},
		{"a heartbeat and more below one hidden value", leases, []string{"*:spec"}, `{"spec":{"renewTime":"CANARY","z":1}}`, `{"spec":{"renewTime":"CANARY2","z":2}}`, `replace spec # → #`},
		{"a hidden key is in no path", widgets, []string{"widgets.example.com:spec.users[*].name"},
			`{"spec":{"users":[{"name":"CANARY1","a":"1"},{"name":"CANARY2"}]}}`, `{"spec":{"users":[{"name":"CANARY2"},{"name":"CANARY1","a":"2"},{"name":"CANARY3"}]}}`,
			`replace spec.users[order] (hidden) → (hidden); replace spec.users[name="#"].a 1 → 2; add spec.users[name="#"] map[name:#]`},
		{"elements by their key", widgets, []string{"widgets.example.com:spec.users[name=admin].password"},
			`{"spec":{"users":[{"name":"admin","password":"CANARY"},{"name":"guest","password":"x"}]}}`, `{"spec":{"users":[{"name":"admin","password":"CANARY2"},{"name":"guest","password":"y"}]}}`,
			`replace spec.users[name=admin].password # → #; replace spec.users[name=guest].password x → y`},
		{"whole elements", widgets, []string{"widgets.example.com:spec.users[*]"},
			`{"spec":{"users":[{"name":"CANARY","a":"1"}]}}`, `{"spec":{"users":[{"name":"CANARY","a":"2"},"CANARY"]}}`,
			`replace spec.users[0] # → #; add spec.users[1] #`},
		{"a list where a name was meant", widgets, []string{"widgets.example.com:spec.users.password"},
			`{"spec":{"users":[{"password":"CANARY"}]}}`, `{"spec":{"users":[{"password":"CANARY2"}]}}`, `replace spec.users # → #`},
		{"a text where a list was meant", widgets, []string{"widgets.example.com:spec.users[*].password"}, `{"spec":{"users":"CANARY"}}`, `{"spec":{"users":17}}`, `replace spec.users # → #`},
		{"an object where a list was meant", widgets, []string{"widgets.example.com:spec.users[*]"}, `{"spec":{"users":[]}}`, `{"spec":{"users":{"CANARY":1}}}`, `replace spec.users [] → #`},
		{"null is no secret", secrets, nil, `{"data":{"a":null}}`, `{"data":{"a":"CANARY"}}`, `replace data.a <nil> → #`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := observer(t, c.kind, c.hide...)
			change := observe.Change{Verb: event.Updated, Old: parse(t, c.old), New: parse(t, c.new)}
			e := o.Event(change)
			if !e.Is(event.Content) && !e.Is(event.Metadata) {
				t.Errorf("classes: %v", e.Classes)
			}
			var lines []string
			for _, f := range e.Fields {
				line := fmt.Sprintf("%s %s", f.Op, f.Path)
				if f.Op != event.Add {
					line += fmt.Sprintf(" %v", f.From)
				}
				if f.Op == event.Replace {
					line += " →"
				}
				if f.Op != event.Remove {
					line += fmt.Sprintf(" %v", f.To)
				}
				if hides := strings.Contains(line, "(hidden"); hides != f.Hidden {
					t.Errorf("%s: Hidden is %v", line, f.Hidden)
				}
				lines = append(lines, tag.ReplaceAllString(line, "#"))
			}
			if got := strings.Join(lines, "; "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			for _, verb := range []event.Verb{event.Updated, event.Created, event.Deleted, event.Replaced, event.Existing} {
				change.Verb = verb
				if text := jsonOf(t, o.Event(change)); strings.Contains(text, "CANARY") {
					t.Errorf("%s: a secret is in %s", verb, text)
				}
			}
		})
	}
}

func TestTags(t *testing.T) {
	shown := func(o *observe.Observer, text string) string {
		data, _ := o.Event(observe.Change{Verb: event.Created, New: parse(t, text)}).New["data"].(map[string]any)
		s, _ := data["a"].(string)
		return s
	}
	o := observer(t, secrets)
	one := shown(o, `{"metadata":{"uid":"u"},"data":{"a":"x"}}`)
	if again := shown(o, `{"metadata":{"uid":"u"},"data":{"b":"z","a":"x"}}`); one != again || !tag.MatchString(one) {
		t.Errorf("one value is %s and %s", one, again)
	}
	for name, other := range map[string]string{
		"another value":   shown(o, `{"metadata":{"uid":"u"},"data":{"a":"y"}}`),
		"another object":  shown(o, `{"metadata":{"uid":"v"},"data":{"a":"x"}}`),
		"another process": shown(observe.New(observe.Options{Kind: secrets}), `{"metadata":{"uid":"u"},"data":{"a":"x"}}`),
	} {
		if other == one {
			t.Errorf("%s has the same tag", name)
		}
	}
	data := o.Event(observe.Change{Verb: event.Created, New: parse(t, `{"data":{"a":"x","b":"x"}}`)}).New["data"].(map[string]any)
	if data["a"] == data["b"] {
		t.Error("one value in two places can be recognised")
	}
}

const canary = "s3cr3t-c4n4ry"

var fuzzRules = []string{
	"*:metadata.annotations[example.com/token]", "*:metadata.labels.*",
	"*:spec.token", "*:spec.users[*].password", "*:spec.users[*].name", "*:spec.list[*]", "*:spec.*.deep.*", "*:data.*.x", "*:status",
}

// plant puts a secret at one of the places that the rules hide, and below it.
func plant(tree map[string]any, place uint8, v any) {
	under := func(m map[string]any, name string) map[string]any {
		below, ok := m[name].(map[string]any)
		if !ok {
			below = map[string]any{}
			m[name] = below
		}
		return below
	}
	spec := under(tree, "spec")
	switch place % 11 {
	case 0:
		under(under(tree, "metadata"), "annotations")["example.com/token"] = v
	case 1:
		under(under(tree, "metadata"), "labels")["any"] = v
	case 2:
		spec["token"] = v
	case 3:
		users, _ := spec["users"].([]any)
		spec["users"] = append(users, map[string]any{"name": "u", "password": v})
	case 4:
		users, _ := spec["users"].([]any)
		spec["users"] = append([]any{map[string]any{"name": v, "type": "t"}}, users...)
	case 5:
		list, _ := spec["list"].([]any)
		spec["list"] = append([]any{v, "x"}, list...)
	case 6:
		under(under(spec, "any"), "deep")["x"] = v
	case 7:
		spec["users"] = v // not a list, as the rules want it
	case 8:
		if _, names := v.(map[string]any); names {
			v = canary // names are shown
		}
		tree["data"] = v
	case 9:
		under(under(tree, "metadata"), "annotations")["kubectl.kubernetes.io/last-applied-configuration"] = v
	case 10:
		tree["status"] = map[string]any{canary: v}
	}
}

// wrapped is the secret in some form.
func wrapped(form uint8) any {
	switch form % 4 {
	case 1:
		return map[string]any{canary: canary, "name": canary}
	case 2:
		return []any{canary, map[string]any{"name": canary}, []any{canary}}
	}
	return canary
}

// FuzzHidden plants secrets where rules hide them, in any trees, and looks for them in all
// that an event says.
func FuzzHidden(f *testing.F) {
	f.Add([]byte(`{"spec":{"users":[{"name":"a"},{"name":"b","password":"x"}]}}`), []byte(`{"spec":{"users":[{"name":"b","password":"y"},{"name":"a"}]}}`), uint8(3), uint8(0), uint8(4), uint8(1))
	f.Add([]byte(`{"data":{"a":"b"}}`), []byte(`{"data":{"a":{"x":1}},"metadata":{"annotations":[]}}`), uint8(8), uint8(2), uint8(0), uint8(0))
	f.Add([]byte(`{"spec":{"list":["x","y",1],"a":{"deep":{"z":1}}}}`), []byte(`{"spec":{"list":["y","x"]}}`), uint8(5), uint8(0), uint8(6), uint8(1))
	observers := []*observe.Observer{observer(f, widgets, fuzzRules...), observer(f, secrets, fuzzRules...), observer(f, pods, fuzzRules...)}
	f.Fuzz(func(t *testing.T, a, b []byte, placeA, formA, placeB, formB uint8) {
		var from, to map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts(a, &from) != nil || kjson.UnmarshalCaseSensitivePreserveInts(b, &to) != nil || from == nil || to == nil {
			return
		}
		if strings.Contains(string(a)+string(b), "s3cr3t") {
			return
		}
		plant(from, placeA, wrapped(formA))
		plant(to, placeB, wrapped(formB))
		silent(t, observers, from, to)
	})
}

func silent(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, observers []*observe.Observer, from, to map[string]any) {
	t.Helper()
	for _, o := range observers {
		for _, verb := range []event.Verb{event.Updated, event.Replaced, event.Created, event.Deleted} {
			e := o.Event(observe.Change{Verb: verb, Old: from, New: to})
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatalf("%v", err)
			}
			if strings.Contains(string(data), canary) {
				was, _ := json.Marshal(from)
				is, _ := json.Marshal(to)
				t.Fatalf("%s: the secret is in\n%s\nfrom\n%s\nto\n%s", verb, data, was, is)
			}
		}
	}
}

func TestNoSecretIsTold(t *testing.T) {
	observers := []*observe.Observer{observer(t, widgets, fuzzRules...), observer(t, secrets, fuzzRules...), observer(t, pods, fuzzRules...)}
	scalar := rapid.OneOf(rapid.Just[any](nil), rapid.Just[any]("a"), rapid.Just[any]("b"), rapid.Just[any](int64(1)), rapid.Just[any](true))
	names := rapid.SampledFrom([]string{"metadata", "annotations", "labels", "spec", "data", "users", "list", "name", "deep", "token", "password"})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		below := rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) })
		return rapid.OneOf(scalar,
			rapid.Map(rapid.SliceOfN(below, 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(names, below, 0, 4), func(m map[string]any) any { return m }))
	}
	tree := rapid.MapOfN(names, value(4), 1, 5)
	rapid.Check(t, func(t *rapid.T) {
		from, to := tree.Draw(t, "from"), tree.Draw(t, "to")
		for range rapid.IntRange(1, 3).Draw(t, "plants") {
			plant(from, rapid.Uint8().Draw(t, "place"), wrapped(rapid.Uint8().Draw(t, "form")))
			plant(to, rapid.Uint8().Draw(t, "place"), wrapped(rapid.Uint8().Draw(t, "form")))
		}
		silent(t, observers, from, to)
	})
}

func FuzzParseRule(f *testing.F) {
	for _, text := range append(fuzzRules, `pods:a["]"].b[c="d"]`, "pods:a[b=c].*") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := observe.ParseRule(text)
		if err != nil {
			return
		}
		if r.String() != text {
			t.Fatalf("%q became %q", text, r)
		}
		observe.New(observe.Options{Kind: pods, Hide: []observe.Rule{r}}).Event(observe.Change{Verb: event.Created, New: map[string]any{
			"spec": map[string]any{"a": []any{map[string]any{"b": "c"}, "d"}}, "a": []any{}, "b": "c"}})
	})
}
