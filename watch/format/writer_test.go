// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/event"
)

// FuzzWrite holds that no text in an object reaches a terminal as something that it obeys,
// in any form, and that programs read back what was written.
func FuzzWrite(f *testing.F) {
	for _, s := range []string{
		"\x1b[31m", "\u009b31m", "a\r\nb\n", "\u202e", "\U000e0041", "\xff\xfe", "\u2028", "[order]", `[a="]`, "metadata.labels[", "yes", "~",
		"status.conditions[type=\x1b].status", "spec.containers[name=\u009b]", "data.x", "\u00ad", "\ufeff", "- a: b\n  c", "\t", "metadata.deletionTimestamp",
	} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, path, text string) {
		for _, e := range []*event.Event{
			an(event.Updated, pods, "n/"+text, replaced(path, text, "a\nb"), added(path+"."+text, obj{text: list(text)}), removed("data."+path, text)),
			with(an(event.Created, pods, text+"/x"), func(e *event.Event) {
				e.New = obj{"metadata": obj{"name": text}, "spec": obj{"nodeName": text, "containers": list(obj{"image": text})}, text: text}
				e.Authors = []event.Author{{Manager: text, Subresource: path}}
			}),
			with(an(event.Deleted, configMaps, "x"), func(e *event.Event) { e.Old, e.Summary = obj{"data": obj{text: text}}, text }),
		} {
			for _, form := range Forms() {
				got := write(t, Options{Form: form, WithObjects: true, Width: 80}, e)
				allowed := "\n"
				if form == Diff {
					allowed = "\n\t" // layout of the lines of a text
				}
				for _, r := range got {
					if dangerous(r) && !strings.ContainsRune(allowed, r) {
						t.Fatalf("%s writes %U: %q", form, r, got)
					}
				}
				lines := strings.Count(got, "\n")
				if (form == Text || form == JSON || form == CloudEvents) && lines != 1 {
					t.Fatalf("%s has %d lines: %q", form, lines, got)
				}
				if form == YAML {
					sameInYAML(t, e, got)
				}
			}
			if s := Sentence(e); strings.ContainsFunc(s, dangerous) {
				t.Fatalf("the sentence is %q", s)
			}
		}
	})
}

// sameInYAML holds that a document says what the JSON says.
func sameInYAML(t *testing.T, e *event.Event, doc string) {
	b, err := event.Encode(Summarized(e), true)
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(doc), &got); err != nil {
		t.Fatalf("%v in %q", err, doc)
	}
	again, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	if err := json.Unmarshal(again, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("the document %q says %v, want %v", doc, got, want)
	}
}

func TestJSONIsTheSameAfterItWasMadeSafe(t *testing.T) {
	e := an(event.Updated, pods, "n/x", replaced("a\x1b", "\u009b\u202e\U000e0041\x7f<&>", "\ufeff"))
	got, err := event.Decode([]byte(write(t, Options{Form: JSON}, e)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Fields, e.Fields) {
		t.Errorf("read back %+v, want %+v", got.Fields, e.Fields)
	}
}

func TestLinesFitIntoTheWidth(t *testing.T) {
	long := strings.Repeat("größe日本 ", 40)
	got := write(t, Options{Width: 100}, an(event.Updated, pods, "n/x", replaced("spec.x", long, "a"), replaced("spec.y", "b", long)))
	if n := width(strings.TrimSuffix(got, "\n")); n > 100 || n < 90 {
		t.Errorf("%d columns: %s", n, got)
	}
}

func TestFirstLinesOfAWideTerminalStandBelowEachOther(t *testing.T) {
	a, b := an(event.Updated, pods, "n/x", added("spec.nodeName", "m")), an(event.Updated, pods, "n/longer", added("spec.nodeName", "m"))
	at := func(o Options) [2]int {
		first, second, _ := strings.Cut(write(t, o, a, b), "\n")
		return [2]int{strings.Index(first, "scheduled"), strings.Index(second, "scheduled")}
	}
	if got := at(Options{Width: 120}); got[0] != got[1] || got[0] < 0 {
		t.Errorf("of 120 columns: the words begin at %v", got)
	}
	if got := at(Options{Width: 119}); got[0] >= got[1] {
		t.Errorf("of 119 columns: the words begin at %v; no place is to be kept free", got)
	}
}

func TestWidthIsInColumns(t *testing.T) {
	for s, want := range map[string]int{"abc": 3, "größe": 5, "日本": 4, "e\u0301": 1, "→…": 2, "😀": 2, "": 0} {
		if got := width(s); got != want {
			t.Errorf("%q takes %d columns, want %d", s, got, want)
		}
	}
	for want, got := range map[string]string{
		"ab…": cut("abcdef", 3), "a…f": squeeze("abcdef", 3), "日…": cut("日本語", 4), "abc": cut("abc", 3), "…語": squeeze("日本語", 4),
	} {
		if got != want {
			t.Errorf("cut to %q, want %q", got, want)
		}
	}
}

func TestColoursAreOnlyThereIfAskedFor(t *testing.T) {
	for _, form := range Forms() {
		coloured := strings.Contains(write(t, Options{Form: form, Color: true}, day()...), "\x1b")
		if want := form == Text || form == Diff; coloured != want {
			t.Errorf("%s with colours: %v", form, coloured)
		}
		if strings.Contains(write(t, Options{Form: form}, day()...), "\x1b") {
			t.Errorf("%s has colours without being asked", form)
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("the pipe is gone") }

func TestFailuresAreTold(t *testing.T) {
	e := an(event.Updated, pods, "n/x")
	if err := New(failing{}, Options{}).Write(e); err == nil || err.Error() != "writing an event: the pipe is gone" {
		t.Errorf("the error is %v", err)
	}
	if err := New(failing{}, Options{Form: "xml"}).Write(e); err == nil || !strings.Contains(err.Error(), `there is no form "xml"`) {
		t.Errorf("the error is %v", err)
	}
	e.Fields = []event.Field{added("spec.x", func() {})}
	for _, form := range []Form{JSON, YAML, CloudEvents} {
		if err := New(failing{}, Options{Form: form}).Write(e); err == nil || !strings.Contains(err.Error(), "pods n/x") {
			t.Errorf("%s: the error is %v", form, err)
		}
	}
}

func TestFormsHaveNames(t *testing.T) {
	for _, form := range Forms() {
		if got, err := ParseForm(string(form)); got != form || err != nil {
			t.Errorf("%s is read as %q, %v", form, got, err)
		}
	}
}

func TestAnElementIsNamedByItsKey(t *testing.T) {
	for text, want := range map[string]string{
		"a[name=web]": "web", `a[name="a b"]`: "a b", "a[port=80]": "80", "a[3]": "3", "a[order]": "order", `a[name="x]"]`: "x]",
	} {
		path, err := diff.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := key(path[1]); got != want {
			t.Errorf("the key of %s is %q, want %q", text, got, want)
		}
	}
}

func TestTextsAreComparedLineByLine(t *testing.T) {
	for name, test := range map[string]struct{ a, b, want string }{
		"a line between":         {"a\nc\n", "a\nb\nc\n", "@@ -1,2 +1,3 @@| a|+b| c"},
		"from nothing":           {"", "a\n", "@@ -0,0 +1 @@|+a"},
		"to nothing":             {"a\nb\n", "", "@@ -1,2 +0,0 @@|-a|-b"},
		"the newline at the end": {"a", "a\n", `@@ -1 +1 @@|-a|\ no newline at the end|+a`},
		"two places": {"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", "x\n2\n3\n4\n5\n6\n7\n8\n9\ny\n",
			"@@ -1,4 +1,4 @@|-1|+x| 2| 3| 4|@@ -7,4 +7,4 @@| 7| 8| 9|-10|+y"},
		"the same": {"a\n", "a\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(unified(test.a, test.b), "|"); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestAComparisonHasBothTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "d\n"}), 0, 30)
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		var olds, news []string
		for _, e := range edits(strings.Join(a, ""), strings.Join(b, "")) {
			if e.op != '+' {
				olds = append(olds, e.line)
			}
			if e.op != '-' {
				news = append(news, e.line)
			}
		}
		if strings.Join(olds, "") != strings.Join(a, "") || strings.Join(news, "") != strings.Join(b, "") {
			t.Fatalf("%q and %q became %q and %q", a, b, olds, news)
		}
	})
}

func TestLargeTextsWithoutCommonLinesAreToldWhole(t *testing.T) {
	a, b := strings.Repeat("a\n", 3000), strings.Repeat("b\n", 3000)
	if got := unified(a, b); len(got) != 6001 || got[0] != "@@ -1,3000 +1,3000 @@" {
		t.Errorf("%d lines, the first %s", len(got), got[0])
	}
}

func BenchmarkText(b *testing.B) {
	w := New(&strings.Builder{}, Options{Width: 120})
	e := day()[4]
	b.ReportAllocs()
	for b.Loop() {
		w.out = &strings.Builder{}
		if err := w.Write(e); err != nil {
			b.Fatal(err)
		}
	}
}

// On a narrow terminal the state of a settled object stays, and what began it becomes shorter.
func TestAMergedChangeThatIsTooLong(t *testing.T) {
	e := an(event.Settled, deployments, "n/x", replaced("spec.template.spec.containers[name=web].image", "registry.example.com/shop/web:1.29", "registry.example.com/shop/web:1.30"))
	e.Summary = "14 changes in 1 s, now 3/3 ready"
	for columns, want := range map[int]string{
		200: "image of web registry.example.com/shop/web:1.29 → 1.30, 14 changes in 1 s, now 3/3 ready",
		80:  "image of web registry.exa…hop/web:1.29 → 1.30, 14 changes in 1 s, now 3/3 ready",
		60:  "image of web registr…eb:1…, 14 changes in 1 s, now 3/3 ready",
		40:  "14 changes in 1 s, now 3/3 ready",
		20:  "14 changes in 1 s,…",
	} {
		if got := fit(e, Words(e), columns); got != want || width(got) > columns {
			t.Errorf("in %d columns %q, want %q", columns, got, want)
		}
	}
}

func TestADiffShowsBlanksAtTheEndOfALine(t *testing.T) {
	var b bytes.Buffer
	e := &event.Event{
		Verb: event.Updated, Kind: event.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps"}, Classes: []event.Class{event.Content},
		Fields: []event.Field{{Path: "data.conf", Op: event.Replace, From: "a\nb  \nc\n", To: "a\nb\nc\n", Class: event.Content}},
	}
	if err := New(&b, Options{Form: Diff}).Write(e); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "-b  \n") || !strings.Contains(text, "+b\n") {
		t.Errorf("the lines do not differ:\n%s", text)
	}
}
