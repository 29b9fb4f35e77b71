// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"fmt"
	"testing"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/observe"
)

func TestAuthors(t *testing.T) {
	const early, late = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
	entry := func(manager, subresource, time, fields string) string {
		return fmt.Sprintf(`{"manager":%q,"operation":"Update","subresource":%q,"time":%q,"apiVersion":"v1","fieldsV1":%s}`, manager, subresource, time, fields)
	}
	object := func(rest string, entries ...string) string {
		list := ""
		for i, e := range entries {
			if i > 0 {
				list += ","
			}
			list += e
		}
		return `{"metadata":{"managedFields":[` + list + `]` + rest + `}`
	}
	const spec = `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{}}}}}`
	const status = `{"f:status":{"f:phase":{}}}`
	const labels = `{"f:metadata":{"f:labels":{".":{},"f:a":{}},"f:finalizers":{".":{},"v:\"x\"":{}}}}`
	const replicas = `{"f:spec":{"f:replicas":{}}}`
	scaled := func(n string) string { return `},"spec":{"replicas":` + n + `}` }
	scaler := `{"manager":"kubectl","operation":"Update","subresource":"scale","apiVersion":"v1","fieldsV1":` + replicas + `}`
	image := func(tag string) string { return `},"spec":{"containers":[{"name":"web","image":"` + tag + `"}]}` }
	for _, c := range []struct {
		name     string
		old, new string
		missed   bool
		want     string
	}{
		{"the newest", object(image("1"), entry("a", "", early, spec)), object(image("2"), entry("a", "", early, spec), entry("b", "", late, `{}`)), false, "[b]"},
		{"of one second, who moved", object(image("1"), entry("a", "", late, spec)), object(image("2"), entry("a", "", late, `{}`), entry("b", "", late, spec)), false, "[b]"},
		{"of one second, whose fields they are", object(image("1")), object(image("2"), entry("a", "status", late, status), entry("b", "", late, spec)), false, "[b]"},
		{"who writes twice in a second", object(image("1"), entry("a", "", late, spec)), object(image("2"), entry("a", "", late, spec)), false, "[a]"},
		{"both, if nothing tells", object(image("1")), object(image("2"), entry("a", "", late, `{}`), entry("b", "", late, `{}`)), false, "[a b]"},
		{"a set", object(`,"finalizers":["y"]}`), object(`,"finalizers":["y","x"]}`, entry("a", "", late, spec), entry("b", "", late, labels)), false, "[b]"},
		{"a label", object(`,"labels":{"a":"1"}}`), object(`,"labels":{"a":"2"}}`, entry("a", "", late, spec), entry("b", "", late, labels)), false, "[b]"},
		{"who only took away is not known", object(`,"labels":{"a":"1","b":"2"}}`, entry("a", "", late, labels)), object(`,"labels":{"a":"1"}}`, entry("a", "", late, labels)), false, "[]"},
		{"what was missed has the newest", object(`,"labels":{"a":"1","b":"2"}}`, entry("a", "", late, labels)), object(`,"labels":{"a":"1"}}`, entry("a", "", late, labels)), true, "[a]"},
		{"who scales for the first time", object(scaled("1"), entry("a", "", late, replicas)), object(scaled("2"), entry("a", "", late, `{}`), scaler), false, "[kubectl]"},
		{"who scales again", object(scaled("1"), entry("a", "", late, status), scaler), object(scaled("2"), entry("a", "", late, status), scaler), false, "[kubectl]"},
		{"who changes something else after that", object(scaled("1"), scaler, entry("a", "status", early, status)), object(scaled("1")[:len(scaled("1"))-1]+`,"x":1}`, scaler, entry("a", "status", late, status)), false, "[a]"},
		{"who scaled while nobody watched", object(scaled("1"), entry("a", "", late, spec)), object(scaled("2"), entry("a", "", late, spec), scaler), true, "[kubectl]"},
		{"who may have scaled, where the state before is not known", "", object(scaled("2"), entry("a", "", late, spec), entry("b", "", early, spec), scaler), true, "[a kubectl]"},
		{"a creation", "", object(`}`, entry("a", "", late, `{}`)), false, "[a]"},
		{"nonsense", object(`}`), `{"metadata":{"managedFields":[1,{},{"time":"x","fieldsV1":7},null]},"a":1}`, false, "[]"},
		{"none", `{"a":1}`, `{"a":2}`, false, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			verb := event.Updated
			if c.old == "" && !c.missed {
				verb = event.Created
			}
			e := observer(t, pods).Event(observe.Change{Verb: verb, Old: parse(t, c.old), New: parse(t, c.new), Missed: c.missed})
			names := []string{}
			for _, a := range e.Authors {
				if a.Manager != "" {
					names = append(names, a.Manager)
				}
			}
			if got := fmt.Sprint(names); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
