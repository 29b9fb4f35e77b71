// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/cel-go/cel"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

type obj = map[string]any

func list(values ...any) []any { return values }

// scaled is an update of a Deployment.
func scaled() *event.Event {
	spec := func(replicas int64) obj {
		return obj{
			"replicas": replicas,
			"paused":   false,
			"template": obj{"spec": obj{"containers": list(obj{"name": "web", "image": "nginx:1.27"}, obj{"name": "log", "image": "vector:1"})}},
		}
	}
	meta := obj{"name": "web", "labels": obj{"app.kubernetes.io/name": "web", "tier": "front"}}
	return &event.Event{
		Verb: event.Updated, ID: "1", Time: time.Date(2026, 3, 4, 15, 4, 5, 0, time.UTC),
		Kind: event.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true},
		Key:  object.Key{Namespace: "team-a", Name: "web"}, Classes: []event.Class{event.Content, event.Status},
		Fields: []event.Field{
			{Path: "spec.replicas", Op: event.Replace, From: int64(1), To: int64(3), Class: event.Content},
			{Path: "metadata.labels.tier", Op: event.Add, To: "front", Class: event.Metadata},
		},
		Authors: []event.Author{{Manager: "kubectl-edit", Operation: "Update", Subresource: "scale"}},
		Old:     obj{"metadata": meta, "spec": spec(1)}, New: obj{"metadata": meta, "spec": spec(3)},
	}
}

func TestConditions(t *testing.T) {
	deleted := scaled()
	deleted.Verb, deleted.New, deleted.Fields, deleted.Authors, deleted.Missed = event.Deleted, nil, nil, nil, true
	failing := scaled()
	failing.Verb, failing.Classes = event.Failing, []event.Class{event.Troubled}
	failing.Trouble = []event.Trouble{{About: "container web", Reason: "OOMKilled", ExitCode: 137, Restarts: 2}}
	existing := scaled()
	existing.Verb, existing.Old, existing.Fields = event.Existing, nil, nil
	for name, test := range map[string]struct {
		expr string
		e    *event.Event
		want bool
	}{
		"a verb":                             {`event.verb == "updated"`, scaled(), true},
		"another verb":                       {`event.verb == "deleted"`, scaled(), false},
		"several verbs":                      {`event.verb in ["created", "updated"]`, scaled(), true},
		"kind, group and namespace":          {`event.kind == "Deployment" && event.group == "apps" && event.apiVersion == "apps/v1" && event.namespace == "team-a"`, scaled(), true},
		"a namespace by its beginning":       {`event.namespace.startsWith("team-")`, scaled(), true},
		"a pattern":                          {`event.name.matches("^w.b$")`, scaled(), true},
		"a class":                            {`"status" in event.classes`, scaled(), true},
		"a changed field":                    {`event.fields.exists(f, f.path == "spec.replicas" && f.to > f.from)`, scaled(), true},
		"an added field has nothing before":  {`event.fields.exists(f, f.op == "add" && f.from == null)`, scaled(), true},
		"an author":                          {`event.authors.exists(a, a.manager == "kubectl-edit" && a.subresource == "scale")`, scaled(), true},
		"a trouble":                          {`event.trouble.exists(t, t.reason == "OOMKilled" && t.exitCode > 128)`, failing, true},
		"the class of troubles":              {`"trouble" in event.classes && event.verb == "failing"`, failing, true},
		"no trouble":                         {`event.trouble.size() > 0`, scaled(), false},
		"nobody known":                       {`event.authors.size() == 0`, deleted, true},
		"the new state":                      {`new.spec.replicas > 2`, scaled(), true},
		"before and after":                   {`old.spec.template != new.spec.template`, scaled(), false},
		"a whole number beside a fraction":   {`new.spec.replicas > 2.5`, scaled(), true},
		"a label":                            {`object.metadata.labels["app.kubernetes.io/name"] == "web"`, scaled(), true},
		"a list of the object":               {`new.spec.template.spec.containers.exists(c, c.image.startsWith("nginx:"))`, scaled(), true},
		"a field that is there":              {`has(new.spec.paused) && !new.spec.paused`, scaled(), true},
		"a field that is not there":          {`has(new.spec.selector)`, scaled(), false},
		"a default":                          {`new.?spec.minReadySeconds.orValue(0) == 0`, scaled(), true},
		"nothing before":                     {`old == null && event.initial`, existing, true},
		"nothing after":                      {`new == null && event.missed && object.metadata.name == "web"`, deleted, true},
		"one side of an or has no answer":    {`new.spec.nothing == 1 || event.kind == "Deployment"`, scaled(), true},
		"the time of the event":              {`event.time > timestamp("2026-01-01T00:00:00Z") && event.time.getHours() == 15`, scaled(), true},
		"texts":                              {`event.name.charAt(0) == "w" && "größe".substring(2, 4) == "öß" && "a-b".split("-").join("+") == "a+b"`, scaled(), true},
		"texts are searched by characters":   {`"größe".indexOf("e") == 4 && "aba".lastIndexOf("a") == 2 && "aba".indexOf("a", 1) == 2`, scaled(), true},
		"texts made smaller and larger":      {`" ABc ".trim().lowerAscii() == "abc" && "a".upperAscii() == "A" && "aa".replace("a", "b", 1) == "ba"`, scaled(), true},
		"the first of joined texts is empty": {`["", "a"].join(",") == ",a"`, scaled(), true},
		"lists":                              {`[1, 2].isSorted() && [1, 2].sum() == 3 && [1, 2].min() == 1 && [1, 2].max() == 2 && [2, 2].indexOf(2) == 0 && [2, 2].lastIndexOf(2) == 1`, scaled(), true},
		"lists made of lists":                {`[1, 1, 2].distinct() == [1, 2] && [[1], [2]].flatten() == [1, 2] && [1, 2, 3].slice(1, 2) == [2]`, scaled(), true},
		"sets":                               {`sets.contains(event.classes, ["status"]) && sets.intersects([1, 2], [2, 3]) && sets.equivalent([1, 2, 2], [2, 1])`, scaled(), true},
		"a list of the object as a set":      {`sets.contains(new.spec.template.spec.containers.map(c, c.name), ["web"])`, scaled(), true},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Compile(test.expr)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Matches(test.e)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("%s is %v", test.expr, got)
			}
			if c.String() != test.expr {
				t.Errorf("the condition is %q", c)
			}
		})
	}
}

func TestMistakesArePointedTo(t *testing.T) {
	for name, test := range map[string]struct{ expr, want string }{
		"an unknown variable": {`evnt.verb == "updated"`, `the condition is wrong: undeclared reference to 'evnt'
    evnt.verb == "updated"
    ^
did you mean "event"? There are event, old, new and object`},
		"a field without event": {`true && verb == "updated"`, `the condition is wrong: undeclared reference to 'verb'
    true && verb == "updated"
            ^
did you mean "event.verb"?`},
		"an unknown field": {"true &&\n\tevent.nmaespace == 'a'", `the condition is wrong: undefined field 'nmaespace'
     event.nmaespace == 'a'
          ^
did you mean "namespace"?`},
		"an unknown field of a changed field": {`event.fields.exists(f, f.pth == "x")`, `the condition is wrong: undefined field 'pth'
    event.fields.exists(f, f.pth == "x")
                            ^
did you mean "path"?`},
		"an unknown function": {`event.name.lowerAsci() == "x"`, `the condition is wrong: undeclared reference to 'lowerAsci'
    event.name.lowerAsci() == "x"
                        ^
did you mean "lowerAscii"?`},
		"an unknown function of the language": {`event.name.startWith("x")`, `the condition is wrong: undeclared reference to 'startWith'
    event.name.startWith("x")
                        ^
did you mean "startsWith"?`},
		"an assignment": {`event.verb = "updated"`, `the condition is wrong: Syntax error: token recognition error at: '= '
    event.verb = "updated"
               ^
two values are compared with ==`},
		"two types compared": {`event.verb == 1`, `the condition is wrong: found no matching overload for '_==_' applied to '(string, int)'
    event.verb == 1
               ^`},
		"no condition": {`event.verb`, `the condition is wrong: it is of type string, and not true or false
    event.verb
    ^
compare it with something`},
		"not finished": {`event.verb ==`, `the condition is wrong: Syntax error: mismatched input '<EOF>'
    event.verb ==
                 ^`},
		"nothing": {" ", `the condition is wrong: it is empty
write one, such as event.verb == "deleted"`},
		"a pattern that is none": {`event.name.matches("(")`, "the condition is wrong: the pattern of matches() is not a regular expression: error parsing regexp: missing closing ): `(`\n" +
			`    event.name.matches("(")
                       ^`},
		"a pattern of the object": {`event.name.matches(new.spec.pattern)`, `the condition is wrong: the pattern of matches() is not a literal
    event.name.matches(new.spec.pattern)
                               ^
write it as a text: matches("^web-.*")`},
		"too long": {strings.Repeat("a", 10000), `the condition is wrong: it has 10000 bytes, more than 8192`},
		"a verb that there is not": {`event.verb == "updatd"`, `the condition is wrong: verb is never "updatd"
    event.verb == "updatd"
                  ^
did you mean "updated"? There are created, updated, deleted, replaced, existing, settled, failing, resolved`},
		"a verb that there is not, in a list": {`event.verb in ["created", "gone"]`, `the condition is wrong: verb is never "gone"
    event.verb in ["created", "gone"]
                              ^
There are created, updated, deleted, replaced, existing, settled, failing, resolved`},
		"a class by the name that it does not have": {`"heartbeat" in event.classes`, `the condition is wrong: classes is never "heartbeat"
    "heartbeat" in event.classes
    ^
did you mean "heartbeats"? There are content, metadata, status, trouble, heartbeats, versions`},
		"an element of the classes": {`event.classes.exists(c, c == "version")`, `the condition is wrong: classes is never "version"
    event.classes.exists(c, c == "version")
                                 ^
did you mean "versions"? There are content, metadata, status, trouble, heartbeats, versions`},
		"classes as a set": {`sets.intersects(event.classes, ["spec"])`, `the condition is wrong: classes is never "spec"
    sets.intersects(event.classes, ["spec"])
                                    ^
There are content, metadata, status, trouble, heartbeats, versions`},
		"what happened to a field": {`event.fields.exists(f, f.op != "added")`, `the condition is wrong: op is never "added"
    event.fields.exists(f, f.op != "added")
                                   ^
There are add, remove, replace`},
		"how an author wrote": {`event.authors.all(a, a.operation == "apply")`, `the condition is wrong: operation is never "apply"
    event.authors.all(a, a.operation == "apply")
                                        ^
did you mean "Apply"? There are Apply, Update`},
		"control characters in it": {"'\x1b[31m' + x", "the condition is wrong: undeclared reference to 'x'\n    ' [31m' + x\n              ^\n" +
			"There are event, old, new and object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(test.expr)
			if _, ok := errors.AsType[*CompileError](err); !ok {
				t.Fatalf("the error is %v", err)
			}
			if err.Error() != test.want {
				t.Errorf("the error is\n%s\nwant\n%s", err, test.want)
			}
		})
	}
}

func TestALongLineIsShownAroundTheMistake(t *testing.T) {
	_, err := Compile(strings.Repeat("true && ", 100) + "evnt.missed && " + strings.Repeat("true && ", 100) + "true")
	if err == nil {
		t.Fatal("there is no error")
	}
	lines := strings.Split(err.Error(), "\n")
	shown := []rune(lines[1])
	if at := strings.Index(lines[2], "^"); !strings.HasPrefix(string(shown[at:]), "evnt") || len(shown) > 120 {
		t.Errorf("the error is\n%s", err)
	}
	if text := strings.TrimSpace(lines[1]); !strings.HasPrefix(text, "…") || !strings.HasSuffix(text, "…") {
		t.Errorf("the line does not show where it was cut:\n%s", err)
	}
}

func TestALineThatFitsIsShownWhole(t *testing.T) {
	const line = `!objekt.metadata.name.startsWith("canary-") && event.kind != "Event"`
	_, err := Compile(line)
	if err == nil || !strings.Contains(err.Error(), "\n    "+line+"\n") {
		t.Errorf("the error is\n%v\nwant the whole line in it", err)
	}
}

func TestWithoutAnAnswerNothingMatches(t *testing.T) {
	for name, test := range map[string]struct {
		expr string
		want error
	}{
		"a field that is not there":          {`new.spec.nothing == 1`, ErrAbsent},
		"a field of something that is none":  {`new.spec.replicas.x == 1`, ErrAbsent},
		"another type":                       {`new.spec.replicas > "a"`, ErrAbsent},
		"an index that is not there":         {`new.spec.template.spec.containers[7].name == "x"`, ErrAbsent},
		"a substring that is not there":      {`event.name.substring(1, 9) == "x"`, ErrAbsent},
		"the end before the beginning":       {`event.name.substring(2, 1) == "x"`, ErrFailed},
		"a slice that is not there":          {`[1].slice(0, 2) == [1]`, ErrFailed},
		"the least of nothing":               {`[].min() == 1`, ErrFailed},
		"a division by zero":                 {`1 / (new.spec.replicas - new.spec.replicas) == 1`, ErrFailed},
		"an overflow":                        {`new.spec.replicas + 9223372036854775807 == 1`, ErrFailed},
		"a text that is no number":           {`int(event.name) == 1`, ErrFailed},
		"no condition at all for a null":     {`old.spec.nothing.x == 1`, ErrAbsent},
		"the sum of texts":                   {`["a"].sum() == 1`, ErrAbsent},
		"not known to be a condition before": {`new.spec.replicas`, ErrNotBool},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Compile(test.expr)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Matches(scaled())
			if got || !errors.Is(err, test.want) {
				t.Errorf("%v, %v; want false and %v", got, err, test.want)
			}
			for _, other := range []error{ErrAbsent, ErrFailed, ErrCost, ErrNotBool} {
				if !errors.Is(test.want, other) && errors.Is(err, other) {
					t.Errorf("%v is also %v", err, other)
				}
			}
			if err != nil && !strings.Contains(err.Error(), "deployments.apps team-a/web") {
				t.Errorf("the error names no object: %v", err)
			}
		})
	}
}

// big is an update of an object as large as objects get.
func big() *event.Event {
	e := scaled()
	numbers := make([]any, 50_000)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	text := strings.Repeat("a", 1<<20)
	e.New = obj{"list": numbers, "text": text, "nested": obj{"list": numbers}, "half": text[:1<<19] + "b"}
	e.Old = e.New
	return e
}

// What takes too much in a single call is refused before the call is made, and nothing
// else would: the limit of cost stops an evaluation after a call.
func TestCallsThatTakeTooMuchAreNotMade(t *testing.T) {
	for name, expr := range map[string]string{
		"each once":                  `new.list.distinct().size() > 0`,
		"as sets":                    `sets.contains(new.list, new.list)`,
		"equal sets":                 `sets.equivalent(new.list, new.list)`,
		"sets with things in common": `sets.intersects(new.list, [0])`,
		"a text that grows":          `new.text.replace("a", "aaaaaaaaaaaa") == ""`,
		"a text in place of nothing": `new.text.replace("", new.text) == ""`,
		"joined by a text":           `["", "", "", "", "", "", ""].join(new.text) == ""`,
		"found late":                 `new.text.indexOf(new.half) < 0`,
		"found early":                `new.text.lastIndexOf(new.half) < 0`,
		"lists of lists":             `[new.list, new.list].flatten().size() > 0`,
		"lists of lists of lists":    `[[new.list, new.list]].flatten(2).size() > 0`,
		"numbers without an end":     `lists.range(9223372036854775807).size() > 0`,
		"a list that is not typed":   `dyn(new.list).distinct() == []`,
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Compile(expr)
			if err != nil {
				t.Fatal(err)
			}
			if got := withoutLimit(t, expr, big()); !errors.Is(got, errTooLarge) {
				t.Errorf("without a limit the error is %v", got)
			}
			if got, err := c.Matches(big()); got || !errors.Is(err, ErrCost) {
				t.Errorf("%v, %v; want false and %v", got, err, ErrCost)
			}
		})
	}
}

// withoutLimit evaluates a condition that may cost what it likes.
func withoutLimit(t *testing.T, expr string, e *event.Event) error {
	t.Helper()
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	checked, issues := env.Compile(expr)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(checked, cel.CustomDecorator(bounded(env)))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = program.Eval(&variables{e: e})
	return err
}

func TestNoConditionTakesLong(t *testing.T) {
	big := big()
	for name, expr := range map[string]string{
		"loops in loops":                `new.list.all(a, new.list.all(b, a + b >= 0))`,
		"lists of lists":                `new.list.map(a, new.list).flatten().size() > 0`,
		"a large text, many times":      `new.list.all(a, new.text.size() > 0)`,
		"large things compared":         `new.list.all(a, new.nested == old.nested)`,
		"large things looked for":       `new.list.all(a, !("x" in new.list))`,
		"a text that grows":             `new.text.replace("a", "aaaaaaaaaaaa").replace("a", "aaaaaaaaaaaa") == ""`,
		"a text in place of nothing":    `new.text.replace("", new.text) == ""`,
		"a text joined to itself":       `new.list.map(a, new.text).join(new.text) == ""`,
		"sets":                          `sets.intersects(new.list, new.list.map(a, -1 - a))`,
		"each once":                     `new.list.distinct().size() > 0`,
		"put in order, many times":      `new.list.all(a, new.list.sort() == new.list)`,
		"put in order by something":     `new.list.sortBy(a, -a).size() > 0 && new.list.sortBy(a, -a).size() > 0`,
		"turned round, many times":      `new.list.all(a, new.list.reverse().size() > 0)`,
		"a text cut to pieces":          `new.list.all(a, new.text.split("").size() > 0)`,
		"a text searched":               `new.list.all(a, new.text.indexOf("b") < 0)`,
		"a pattern put to a large text": `new.list.all(a, !new.text.matches("(a|aa)+b"))`,
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Compile(expr)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			got, err := c.Matches(big)
			took := time.Since(began)
			t.Log(took, err)
			if got || !errors.Is(err, ErrCost) {
				t.Errorf("%v, %v; want false and %v", got, err, ErrCost)
			}
			if took > time.Minute { // for busy machines under the race detector; without a limit these take hours
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestOneConditionIsAskedByMany(t *testing.T) {
	c, err := Compile(`new.spec.template.spec.containers.exists(c, c.image == "vector:1") && event.name.matches("^w")`)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if got, err := c.Matches(scaled()); !got || err != nil {
					t.Errorf("%v, %v", got, err)
				}
			}
		})
	}
	all.Wait()
}

func TestEachFieldOfTheShapeHasAValue(t *testing.T) {
	e := scaled()
	e.Trouble = []event.Trouble{{Reason: "OOMKilled"}}
	made := (&variables{e: e}).event()
	first := func(name string) obj {
		return made[name].([]any)[0].(obj)
	}
	for name, have := range map[string]obj{eventType: made, fieldType: first("fields"), authorType: first("authors"), troubleType: first("trouble")} {
		if got, want := sortedKeys(have), sortedKeys(shape[name]); !slices.Equal(got, want) {
			t.Errorf("%s has the fields %q, its shape has %q", name, got, want)
		}
	}
}

// FuzzCompile holds that nothing makes Compile or Matches panic or hang, and that every
// mistake can be shown.
func FuzzCompile(f *testing.F) {
	for _, expr := range []string{
		`event.verb == "updated" && new.spec.replicas > old.spec.replicas`, `event.fields.exists(f, f.pth == "x")`,
		"true &&\n\tevent.nmaespace", `event.name.matches("(")`, `new.?spec.x.orValue([1, 2].sum()) == 3`,
		`sets.contains(event.classes, ["status"])`, `"größe".substring(1).replace("ö", "o").split("")`,
		`dyn({"a": [1]}).a.map(x, x * 2).flatten().distinct().slice(0, 1).min()`, "'\x00\xff", "`", "[1", `event.?verb`,
	} {
		f.Add(expr)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		c, err := Compile(expr)
		if err != nil {
			if _, ok := errors.AsType[*CompileError](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return r == '\x1b' }) {
				t.Errorf("the error would move a terminal: %q", err)
			}
			return
		}
		if got, err := c.Matches(scaled()); got && err != nil {
			t.Errorf("true and an error: %v", err)
		}
	})
}

func BenchmarkMatches(b *testing.B) {
	c, err := Compile(`event.verb == "updated" && new.spec.replicas > old.spec.replicas && event.fields.exists(f, f.path == "spec.replicas")`)
	if err != nil {
		b.Fatal(err)
	}
	e := scaled()
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := c.Matches(e); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
