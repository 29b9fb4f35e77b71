// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/sink"
)

const head = "apiVersion: " + Version + "\n"

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse([]byte(head+text), "w.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAFileMeansWhatItSays(t *testing.T) {
	c := parse(t, `
watch:
  kinds: &kinds [pods, widgets.example.com]
  namespaces: [2024]   # a number is a name too
  labels: tier=web
  show: [heartbeats, status]
  window: 1.5s
  where: event.verb == "deleted"
hide: ["configmaps:data.password"]
cursor: /var/lib/watch/cursor
lease: ops/watch
sinks:
  - name: a
    kubernetesEvents:
  - name: b
    webhook: {url: "https://example.com/$HOME", signingKey: {env: KEY}}
    delivery: {timeout: 3s}
routes:
  - match: {kinds: *kinds}
    sinks: [a]
    continue: true
  - sinks: [b]
`)
	for _, test := range []struct{ what, got, want string }{
		{"kinds", fmt.Sprint(c.Watch.Kinds), "[pods widgets.example.com]"},
		{"namespaces", fmt.Sprint(c.Watch.Namespaces), "[2024]"},
		{"window", c.Watch.Window.String(), "1.5s"},
		{"classes", fmt.Sprint(c.Watch.Shown()), "[content metadata heartbeats status]"},
		{"condition", c.Where().String(), `event.verb == "deleted"`},
		{"an alias", fmt.Sprint(c.Routes[0].Match.Kinds), "[pods widgets.example.com]"},
		{"sorts", c.Sinks[0].Sort() + " " + c.Sinks[1].Sort(), "kubernetesEvents webhook"},
		{"a $ means itself", c.Sinks[1].Webhook.URL.Reveal(), "https://example.com/$HOME"},
		{"timeout", c.Sinks[1].Delivery.Timeout.String(), "3s"},
		{"what is set", fmt.Sprint(c.Set("watch.window"), c.Set("watch.settle"), c.Set("cursor")), "true false true"},
		{"lease", c.Lease, "ops/watch"},
		{"warnings", fmt.Sprint(c.Warnings()), "[]"},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %s, want %s", test.what, test.got, test.want)
		}
	}
}

func TestEachMistakeHasAPlaceAndAnAdvice(t *testing.T) {
	const aSink = "sinks:\n- name: a\n  terminal: {}\n"
	for _, test := range []struct{ name, text, want string }{
		{"key that is not known", "wtach: {}", `w.yaml:2:1: there is no key "wtach" here; did you mean "watch"? There are apiVersion, watch, hide, cursor, cursorStates, listen, lease, sinks, routes`},
		{"key twice", "cursor: a\ncursor: b", `w.yaml:3:1: the key "cursor" stands here twice, the first time in line 2; leave one of them out`},
		{"merge key", "watch: {<<: {all: true}}", `w.yaml:2:9: watch: keys cannot be merged with <<; write them out, or use an alias for a value`},
		{"key that is no name", "watch: {[a]: b}", `w.yaml:2:9: watch: want a plain name as the key, not a list`},
		{"list for a mapping", "watch: []", `w.yaml:2:8: watch: want keys and values, such as "all: …", not a list`},
		{"text for a list", "watch: {kinds: pods}", `w.yaml:2:16: watch.kinds: want a list, such as [a, b], not a text`},
		{"nothing for a list", "watch: {kinds: }", `w.yaml:2:16: watch.kinds: nothing stands here; write a list, or leave the key out`},
		{"empty list that would mean all", "watch: {namespaces: []}", `w.yaml:2:21: watch.namespaces: is empty; name some, or leave the key out`},
		{"truth for a text", "cursor: true", `w.yaml:2:9: cursor: want a text, not true or false; if this is one, put it into quotes`},
		{"text for a truth", `watch: {all: "true"}`, `w.yaml:2:14: watch.all: "true": want true or false, without quotes`},
		{"old truth", "watch: {all: yes}", `w.yaml:2:14: watch.all: "yes": want true or false, without quotes`},
		{"NUL", `cursor: "a\0"`, `w.yaml:2:9: cursor: has a NUL character; take it out`},
		{"time without unit", "watch: {window: 5}", `w.yaml:2:17: watch.window: "5": want a time with its unit, such as 500ms, 5s, 10m or 24h`},
		{"time that goes back", "watch: {settle: -5s}", `w.yaml:2:17: watch.settle: -5s is less than nothing; want a time with its unit, such as 500ms, 5s, 10m or 24h`},
		{"number too large", "sinks: [{name: a, terminal: {}, delivery: {batch: 99999999999999999999}}]", `w.yaml:2:51: sinks[0].delivery.batch: "99999999999999999999": want a whole number, without quotes`},
		{"kind without its group", "watch: {kinds: [deployments]}", `w.yaml:2:17: watch.kinds[0]: "deployments" is no kind without a group; did you mean "deployments.apps"? A kind of your own is named with its group, as in widgets.example.com`},
		{"short name", "watch: {kinds: [deploy]}", `w.yaml:2:17: watch.kinds[0]: "deploy" is no kind without a group; did you mean "deployments.apps"? A kind of your own is named with its group, as in widgets.example.com`},
		{"misspelt kind", "watch: {kinds: [pdos]}", `w.yaml:2:17: watch.kinds[0]: "pdos" is no kind without a group; did you mean "pods"? A kind of your own is named with its group, as in widgets.example.com`},
		{"kind in capitals", "watch: {kinds: [ConfigMap]}", `w.yaml:2:17: watch.kinds[0]: "ConfigMap": want the plural in lower case; did you mean "configmaps"?`},
		{"kind with its version", "watch: {kinds: [deployments.v1.apps]}", `w.yaml:2:17: watch.kinds[0]: "deployments.v1.apps": leave the version out: "deployments.apps". It is watched in the version that the server prefers to v1`},
		{"core kind with its version", "watch: {kinds: [pods.v1]}", `w.yaml:2:17: watch.kinds[0]: "pods.v1": leave the version out: "pods". It is watched in the version that the server prefers to v1`},
		{"subresource", "hide: ['pods/log:spec.x']", `w.yaml:2:8: hide[0]: "pods/log": subresources cannot be watched; name the kind, such as pods`},
		{"object of a short name", "watch: {kinds: [deploy/web]}", `w.yaml:2:17: watch.kinds[0]: "deploy" is no kind without a group; did you mean "deployments.apps"? A kind of your own is named with its group, as in widgets.example.com`},
		{"object without a name", "watch: {kinds: [pods/]}", `w.yaml:2:17: watch.kinds[0]: "pods/": the name of an object is missing behind the slash; leave the slash out for all objects`},
		{"object of no name", "watch: {kinds: [pods/a/b]}", `w.yaml:2:17: watch.kinds[0]: "pods/a/b": "a/b" cannot be the name of an object: it may not contain '/'`},
		{"objects by a pattern", "watch: {kinds: ['pods/web-*']}", `w.yaml:2:17: watch.kinds[0]: "pods/web-*": an object is watched by its whole name; name the kind, and use * in the match of a route`},
		{"object and its kind", "watch: {kinds: [pods, pods/web]}", `w.yaml:2:23: watch.kinds[1]: "pods/web": all objects of pods are watched as well; leave out one of the two`},
		{"matched object of no name", "routes: [{match: {kinds: ['pods/web [1]']}, sinks: []}]", `w.yaml:2:27: routes[0].match.kinds[0]: "web [1]" cannot be the name of an object, and no pattern for some`},
		{"group that cannot be", "watch: {kinds: [a.b_c]}", `w.yaml:2:17: watch.kinds[0]: "a.b_c": "b_c" cannot be a group; write a kind such as deployments.apps`},
		{"all and some", "watch: {all: true, kinds: [pods]}", `w.yaml:2:14: watch.all: all kinds are asked for, and some by name; leave out one of all and kinds`},
		{"pattern of what is watched", "watch: {namespaces: [team-*]}", `w.yaml:2:22: watch.namespaces[0]: "team-*": what is watched is asked of the server by name; write the namespaces out, or use * in the match of a route`},
		{"namespace in and out", "watch: {namespaces: [a], excludeNamespaces: [a]}", `w.yaml:2:46: watch.excludeNamespaces[0]: "a" is among watch.namespaces as well; leave it out of one of them`},
		{"labels", "watch: {labels: 'a in b'}", `w.yaml:2:17: watch.labels: "a in b" is no selector: unable to parse requirement: found 'b' expected: '('; write one such as tier=web,env in (a, b)`},
		{"fields", "watch: {fields: 'a'}", `w.yaml:2:17: watch.fields: "a" is no selector: invalid selector: 'a'; can't understand 'a'; write one such as metadata.name=web`},
		{"sort of change", "watch: {show: [heartbeet]}", `w.yaml:2:16: watch.show[0]: there is no sort of change "heartbeet"; did you mean "heartbeats"? There are content, metadata, status, trouble, heartbeats, versions`},
		{"field that cannot be hidden", "hide: ['configmaps:kind']", `w.yaml:2:8: hide[0]: "configmaps:kind": kind says which object it is, and cannot be hidden`},
		{"rule to hide", "hide: [data.password]", `w.yaml:2:8: hide[0]: "data.password": want a kind, a colon and the path of a field, such as configmaps:data.password`},
		{"place to listen", "listen: 8080", `w.yaml:2:9: listen: "8080": want an address and a port, such as :8080 or 127.0.0.1:8080`},
		{"lease", "lease: watch", `w.yaml:2:8: lease: "watch": want a namespace and a name, such as monitoring/setpoint-watch`},
		{"sink without name", "sinks: [{terminal: {}}]", `w.yaml:2:9: sinks[0].name: a sink needs a name, by which routes lead to it`},
		{"name of a sink", "sinks: [{name: A b, terminal: {}}]", `w.yaml:2:16: sinks[0].name: "A b" cannot be a name: want lower case letters, digits and dashes, at most 63`},
		{"name twice", aSink + "- {name: a, terminal: {}}", `w.yaml:5:10: sinks[1].name: "a" is the name of the sink in line 3 too; give each its own`},
		{"sink without sort", "sinks: [{name: a}]", `w.yaml:2:9: sinks[0]: a sink is of a sort; write one of the keys terminal, file, webhook, kubernetesEvents, mail`},
		{"sink of two sorts", "sinks: [{name: a, terminal: {}, file: {path: x}}]", `w.yaml:2:39: sinks[0].file: a sink is of one sort, and this one is of terminal and file; make them sinks of their own`},
		{"misspelt sort", "sinks: [{name: a, wbhook: {}}]", `w.yaml:2:19: sinks[0]: there is no key "wbhook" here; did you mean "webhook"? There are name, terminal, file, webhook, kubernetesEvents, mail, delivery`},
		{"a sort that is gone", "sinks: [{name: a, notify: {urlFrom: {env: X}}}]", `w.yaml:2:19: sinks[0]: there is no key "notify" any more; write webhook with a body for a chat service, or mail, as docs/watch-sinks.md says`},
		{"secret in two places", "sinks: [{name: a, webhook: {urlFrom: {file: x, env: y}}}]", `w.yaml:2:38: sinks[0].webhook.urlFrom: names a file and an environment variable: set file or env, not both`},
		{"route to nowhere", "routes: [{match: {}}]", `w.yaml:2:10: routes[0]: a route leads to sinks; name them, as in "sinks: […]", or write "sinks: []" to drop what it matches`},
		{"sink that is not there", aSink + "routes: [{sinks: [b]}]", `w.yaml:5:19: routes[0].sinks[0]: there is no sink "b"; there is only "a"`},
		{"no sinks at all", "routes: [{sinks: [b]}]", `w.yaml:2:19: routes[0].sinks[0]: there is no sink "b", nor any other; write it under sinks`},
		{"end that goes on", aSink + "routes: [{sinks: [], continue: true}, {sinks: [a]}]", `w.yaml:5:32: routes[0].continue: a route without sinks that continues does nothing; take continue out, and what it matches ends here`},
		{"verb", aSink + "routes: [{sinks: [a], match: {verbs: [create]}}]", `w.yaml:5:39: routes[0].match.verbs[0]: there is no verb "create"; did you mean "created"? There are created, updated, deleted, replaced, existing, settled, failing, resolved`},
		{"empty condition", "watch: {where: ''}", `w.yaml:2:16: watch.where: the condition is wrong: it is empty; write one, such as event.verb == "deleted"`},
		{"another version", "", ""},
		{"no YAML", "a: [", `w.yaml:2: this is no YAML: did not find expected node content`},
		{"anchor that is not there", "cursor: *a", `w.yaml: this is no YAML: unknown anchor 'a' referenced`},
		{"two documents", "---\na: b", `w.yaml:2: a second document begins here; a configuration is one`},
		{"not UTF-8", "cursor: a\xff", `w.yaml:2:10: the byte 0xff is no text; write the file in UTF-8`},
		{"line end of some programs", "cursor: a\u2028b", `w.yaml:2:10: U+2028 ends a line for some programs and not for others; take it out, or write "\u2028" in double quotes`},
		{"line end of old programs", "cursor: a\rb", `w.yaml:2:10: U+000D ends a line for some programs and not for others; take it out, or write "\u000d" in double quotes`},
		{"control character", "cursor: \x1b[0m", `w.yaml:2:9: the byte 0x1b is no text; write the file in UTF-8`},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := head + test.text
			if test.want == "" {
				text, test.want = "apiVersion: v1", `w.yaml:1:13: apiVersion: "v1": this program reads `+Version
			}
			_, err := Parse([]byte(text), "w.yaml")
			if err == nil {
				t.Fatal("no error")
			}
			if err.Error() != test.want {
				t.Errorf("got\n%s\nwant\n%s", err, test.want)
			}
		})
	}
}

func TestAnEmptyFileLacksItsVersion(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "~"} {
		_, err := Parse([]byte(text), "w.yaml")
		if want := `w.yaml:1: there is no apiVersion; write "apiVersion: setpoint.io/watch/v1" at the top`; err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := Parse([]byte(head), "w.yaml"); err != nil {
		t.Error(err)
	}
}

func TestAllMistakesAreToldAtOnceInTheOrderOfTheFile(t *testing.T) {
	text, err := os.ReadFile("testdata/mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Parse(text, "mistakes.yaml")
	if err == nil {
		t.Fatal("no error")
	}
	golden(t, "testdata/mistakes.txt", []byte(err.Error()+"\n"))
	if strings.Contains(err.Error(), "SECRET") {
		t.Error("a secret is in the errors")
	}
	last := 0
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		var found *Finding
		if !errors.As(err, &found) {
			t.Fatalf("%v is no Finding", err)
		}
		if found.Line < last {
			t.Errorf("%v comes after line %d", found, last)
		}
		last = found.Line
	}
}

func TestFurtherMistakesAreCounted(t *testing.T) {
	var b strings.Builder
	for i := range 250 {
		fmt.Fprintf(&b, "key%d: x\n", i)
	}
	_, err := Parse([]byte(head+b.String()), "w.yaml")
	if err == nil || !strings.HasSuffix(err.Error(), "w.yaml: and 150 more; these are the first 100") {
		t.Error(err)
	}
}

func TestWhatLooksLikeAMistakeIsAWarning(t *testing.T) {
	c := parse(t, `watch:
  kinds: [pods, pods, deploymnets.apps]
  namespaces: [a]
  excludeNamespaces: [b]
  fields: spec.nodeName=x
  settle: 5s
sinks:
- {name: used, terminal: }
- {name: unused, terminal: }
- name: readable
  webhook: {url: "https://me:SECRET@example.com", headers: [{name: Authorization, value: SECRET}]}
routes:
- match: {kinds: [services], namespaces: [c, a], verbs: [updated]}
  sinks: [used, used, readable]
- sinks: [used]
- sinks: []
`)
	var got []string
	for _, w := range c.Warnings() {
		got = append(got, w.Error())
	}
	golden(t, "testdata/warnings.txt", []byte(strings.Join(got, "\n")+"\n"))
}

func TestAnObjectOfAKindIsWatchedAndMatched(t *testing.T) {
	c := parse(t, `watch:
  kinds: [deployments.apps/web, pods/status, secrets/web]
sinks: [{name: a, terminal: }]
routes:
- match: {kinds: [deployments.apps/web, '*.apps/w*', 'secrets/api-*', pods, services/web]}
  sinks: [a]
`)
	if got, want := fmt.Sprint(c.Watch.Kinds), "[deployments.apps/web pods/status secrets/web]"; got != want {
		t.Errorf("watched are %s, want %s", got, want)
	}
	var got []string
	for _, w := range c.Warnings() {
		got = append(got, w.Error())
	}
	want := []string{
		`w.yaml:3:33: watch.kinds[1]: "pods/status" is the object of this name; subresources cannot be watched, and the kind is pods`,
		`w.yaml:6:54: routes[0].match.kinds[2]: matches nothing: "secrets/api-*" is not among watch.kinds`,
		`w.yaml:6:77: routes[0].match.kinds[4]: matches nothing: "services/web" is not among watch.kinds`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the warnings are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTheCaretStandsUnderTheMistakeHoweverItIsWritten(t *testing.T) {
	for _, test := range []struct {
		name, text string
		line       int
		column     string // what stands there
	}{
		{"plain", "watch: {where: event.verb == vreb}", 2, "vreb"},
		{"plain, over lines", "watch:\n  where: event.verb\n\n    ==   \n    vreb", 6, "vreb"},
		{"single quotes", "watch: {where: 'event.name == \"it''s\" || vreb'}", 2, "vreb"},
		{"double quotes", `watch: {where: "event.name == \"\u00e4\x41\" || vreb"}`, 2, "vreb"},
		{"double quotes, over lines", "watch:\n  where: \"event.name ==\n\n    vreb\"", 5, "vreb"},
		{"double quotes, with breaks in them", `watch: {where: "event.name ==\n\tvreb"}`, 2, "vreb"},
		{"double quotes, over lines that go on", "watch:\n  where: \"event.name ==\\\n    vreb\"", 4, "vreb"},
		{"literal", "watch:\n  where: |\n\n    event.verb ==\n      vreb", 6, "vreb"},
		{"literal with a tag, an anchor and an indicator", "watch:\n  where: !!str &x |-\n    event.verb ==\n      vreb", 5, "vreb"},
		{"folded", "watch:\n  where: >\n    event.verb ==\n\n\n    vreb\n", 7, "vreb"},
		{"folded, one line further in", "watch:\n  where: >-\n    event.verb\n      ==\n    vreb\n", 6, "vreb"},
		{"Windows", "watch:\r\n  where: |\r\n    event.verb ==\r\n    vreb\r\n", 5, "vreb"},
		{"wide characters", "watch: {where: '\"äöü𝄞\" == vreb'}", 2, "vreb"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(head+test.text), "w.yaml")
			var found *Finding
			if !errors.As(err, &found) {
				t.Fatalf("%v is no Finding", err)
			}
			row := []rune(strings.Split(head+test.text, "\n")[test.line-1])
			if found.Line != test.line || !strings.HasPrefix(string(row[min(found.Column-1, len(row)):]), test.column) {
				t.Errorf("is at %d:%d, want line %d, before %q:\n%v", found.Line, found.Column, test.line, test.column, err)
			}
			lines := strings.Split(found.Excerpt, "\n")
			if len(lines) != 2 || !strings.HasPrefix(string([]rune(lines[0])[min(strings.Index(lines[1], "^"), len([]rune(lines[0]))):]), test.column) {
				t.Errorf("the caret is elsewhere:\n%s", found.Excerpt)
			}
		})
	}
}

func TestAnExcerptHasNothingButTheCondition(t *testing.T) {
	_, err := Parse([]byte(`{apiVersion: setpoint.io/watch/v1, sinks: [{name: a, webhook: {url: "https://x/SECRET"}}], watch: {where: a b}}`), "w.yaml")
	if err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Error(err)
	}
}

// What a file of a few bytes can stand for, and what a parser can be kept busy with.
func TestNoFileTakesLong(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := range 8 {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", 'b'+i, 'b'+i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", 'a'+i), 9), ","))
	}
	many := "x: &x {" + strings.TrimSuffix(strings.Repeat("a: b, ", 300), ", ") + "}\nsinks: [" + strings.TrimSuffix(strings.Repeat("*x,", 20_000), ",") + "]"
	keys := "x: &x {" + strings.Repeat("y", 500_000) + ": 1}\nsinks: [" + strings.TrimSuffix(strings.Repeat("*x,", 100_000), ",") + "]"
	for _, test := range []struct{ name, text string }{
		{"aliases of aliases", bomb + "watch: {kinds: *i}"},
		{"many aliases of much", many},
		{"many aliases of a long key", keys},
		{"an alias of itself", "sinks: &a [*a, *a]"},
		{"an alias of itself, as a key", "watch: &a {*a : *a}"},
		{"deep lists", strings.Repeat("[", 500_000)},
		{"deep mappings", strings.Repeat("{a: ", 200_000)},
		{"deep blocks", strings.Repeat("- ", 500_000)},
		{"many questions", strings.Repeat("? ", 500_000)},
		{"many keys", strings.Repeat("a: b\n", 60_000)},
		{"many items", "routes:\n" + strings.Repeat("- {}\n", 60_000)},
		{"many conditions", "sinks: [{name: a, terminal: }]\nroutes:\n" + strings.Repeat("- {sinks: [a], match: {where: x}}\n", 16_000)},
		{"many comments", strings.Repeat("#\n", 500_000)},
		{"many anchors", strings.Repeat("- &a\n", 200_000)},
		{"many tags", strings.Repeat("- !a\n", 200_000)},
		{"many documents", strings.Repeat("---\n", 250_000)},
		{"long text", "cursor: " + strings.Repeat("x", 1_000_000)},
		{"long number", "watch: {window: " + strings.Repeat("9", 1_000_000) + "s}"},
		{"long kind", "watch: {kinds: [" + strings.Repeat("x", 1_000_000) + "]}"},
		{"long group", "watch: {kinds: [a." + strings.Repeat("x.", 500_000) + "]}"},
		{"long pattern", "sinks: [{name: a, terminal: }]\nroutes: [{sinks: [a], match: {namespaces: ['" + strings.Repeat("*a", 400_000) + "']}}]"},
		{"long condition", "watch: {where: " + strings.Repeat("(", 1_000_000) + "}"},
		{"long labels", "watch: {labels: '" + strings.Repeat("a,", 400_000) + "b'}"},
		{"long fields", "watch: {fields: '" + strings.Repeat("a=b,", 200_000) + "b=c'}"},
		{"many bad labels", "sinks: [{name: a, terminal: }]\nroutes:\n" + strings.Repeat("- {sinks: [a], match: {labels: 'a in'}}\n", 900)},
		{"many bad kinds", "watch: {kinds: [" + strings.TrimSuffix(strings.Repeat("x,", 40_000), ",") + "]}"},
		{"many bad sinks", "sinks: [{name: a, terminal: }]\nroutes: [{sinks: [" + strings.TrimSuffix(strings.Repeat("x,", 40_000), ",") + "]}]"},
		{"many bad headers", "sinks: [{name: a, webhook: {headers: [" + strings.TrimSuffix(strings.Repeat("{},", 20_000), ",") + "]}}]"},
		{"many sinks without routes", "sinks:\n" + strings.Repeat("- {name: a, webhook: {url: 'https://x'}}\n", 900)},
		{"long line in quotes", "watch: {where: \"" + strings.Repeat("\\x20", 2_000) + "x\"}"},
		{"too large", strings.Repeat("#", MaxSize)},
	} {
		t.Run(test.name, func(t *testing.T) {
			start := time.Now()
			_, err := Parse([]byte(head+test.text), "w.yaml")
			took := time.Since(start)
			if err != nil && len(err.Error()) > 100_000 {
				t.Errorf("the error is of %d bytes", len(err.Error()))
			}
			if took > 30*time.Second { // on a slow machine under the race detector; the figures of a quiet one are in the log
				t.Errorf("took %s", took)
			}
			first, _, _ := strings.Cut(fmt.Sprint(err), "\n")
			t.Logf("%v: %.200s", took.Round(time.Millisecond), first)
		})
	}
}

// All types that options of sinks have can be read: a new one must not come out as an error
// for users.
func TestEveryTypeOfTheOptionsCanBeRead(t *testing.T) {
	c := parse(t, `
sinks:
- {name: t, terminal: {form: diff, color: true, objects: true, source: x}}
- {name: f, file: {path: /x, form: json, objects: true, source: x, maxSizeMB: 1, maxAgeDays: 1, maxBackups: 1, compress: true}}
- name: w
  webhook:
    {urlFrom: {file: /x}, mode: batch, objects: true, source: x, signingKey: {env: X}, headers: [{name: a, value: b}, {name: b, from: {env: C}}], caFile: /x, body: "{}", markup: slack}
- {name: w2, webhook: {url: "https://example.com"}}
- {name: w3, webhook: {urlFrom: {env: X}, signingKey: {file: /x}, headers: [{name: a, from: {file: /x}}]}}
- {name: n2, mail: {server: "x:25", from: a@b.c, to: [a@b.c], username: x, passwordFrom: {env: X}}}
- {name: k, kubernetesEvents: {instance: x, clusterNamespace: kube-system}}
- {name: n, mail: {server: "x:25", from: a@b.c, to: [a@b.c], subject: x, username: x, passwordFrom: {file: /x}, template: "{{.Verb}}"}, delivery: {batch: 1, timeout: 1s, minWait: 1s, maxWait: 2s, maxAge: 1h}}
`)
	missing := map[string]bool{}
	for _, path := range schemaPaths(t) {
		if rest, ok := strings.CutPrefix(path, "sinks[]."); ok {
			missing[rest] = true
		}
	}
	for path := range c.set {
		if _, rest, ok := strings.Cut(path, "]."); ok {
			for i := range 10 {
				rest = strings.ReplaceAll(rest, fmt.Sprintf("[%d]", i), "[]")
			}
			delete(missing, rest)
		}
	}
	for path := range missing {
		t.Errorf("this test does not read sinks[].%s", path)
	}
}

func TestAllMistakesOfASinkAreReported(t *testing.T) {
	d := newDecoder("w.yaml")
	r := rules{decoder: d}
	o := sink.Options{Webhook: &sink.Webhook{Mode: "x", Headers: []sink.Header{{Name: "a b"}}}}
	r.sink("sinks[0]", o)
	if len(d.findings.list) != 4 { // url, mode, name and value of the header
		t.Errorf("found %v", d.findings.err())
	}
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"testdata/mistakes.yaml", "testdata/cluster.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(head + "x: &a [*a]\nwatch: {where: |\n  a}"))
	f.Add([]byte(head + "watch:\n  where: >2-\n    \"a\n\n\n   b"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text, "w.yaml")
		if (c == nil) != (err != nil) {
			t.Fatalf("%v, %v", c, err)
		}
		if err != nil {
			lines := strings.Count(string(text), "\n") + 2
			var found *Finding
			if !errors.As(err, &found) || found.Text == "" || found.Line > lines {
				t.Fatalf("%v in %d lines", err, lines)
			}
			return
		}
		_ = Check(c, nil, nil).Lines()
		if _, err := c.Router().Route(&event.Event{Verb: event.Created, Kind: event.Kind{Version: "v1", Kind: "Pod", Resource: "pods"}}); err != nil {
			_ = err.Error()
		}
		if files, err := Manifests(c, Options{Image: "i", Namespace: "n", Replicas: 2}); err == nil && len(files) == 0 {
			t.Fatal("no files")
		}
	})
}
