// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/runs"
)

// written returns an answer as text.
func written(t *testing.T, f explain.Facts) string {
	t.Helper()
	f.Now, f.Object = now, web
	answer := explain.Tell(f)
	var text strings.Builder
	if err := answer.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// Names, messages and errors with escape sequences, C1 controls and changes of direction do nothing to a terminal.
func TestAnAnswerSteersNoTerminal(t *testing.T) {
	const hostile = "\x1b]0;owned\x07\u009b2J\u202e<script>alert(1)</script>\x7f\r\n"
	text := written(t, explain.Facts{
		State: state("annotations", map[string]any{"a": hostile}), Trouble: []string{hostile}, Recorded: true,
		Below:   []explain.Part{{Object: runs.Object{Kind: "Pod", Namespace: "shop", Name: hostile}, Depth: 1, Trouble: []string{hostile}}},
		Events:  []explain.Event{{Last: now, Reason: hostile, Note: hostile}},
		Present: []runs.Run{{Controller: hostile, Object: web, Began: now, Reasons: []runs.Reason{{Code: "A", Text: "{a}", Params: []runs.Param{{Name: "a", Value: hostile}}}}}},
		Runs:    []explain.Traced{run(hostile, time.Second, func(r *runs.Run) { r.Outcome, r.Error = runs.Failed, hostile })},
		Loops:   []runs.KeyState{{Controller: "c", Object: web, State: runs.StateHeld, Informers: []runs.InformerLag{{Kind: hostile, Trouble: hostile}}}},
		Unread:  []string{hostile},
	})
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("the answer has %q:\n%q", text[i:i+1], text)
	}
	if !strings.Contains(text, `\x1b]0;owned\a\u009b2J\u202e<script>`) {
		t.Errorf("the answer does not show what the text has:\n%s", text)
	}
}

// An object of 1.4 MB whose status quotes all of it has an answer that fits a screen.
func TestAHugeObjectHasAShortAnswer(t *testing.T) {
	huge := strings.Repeat("much text ", 140_000)
	fields := map[string]any{}
	for i := range 10_000 {
		fields[fmt.Sprint("f:key-", i)] = map[string]any{}
	}
	o := state("annotations", map[string]any{"a": huge}, "managedFields", []any{
		map[string]any{"manager": "kubectl", "operation": "Update", "time": "2026-03-02T11:57:00Z", "fieldsV1": map[string]any{"f:data": fields}},
	})
	text := written(t, explain.Facts{State: o, Trouble: []string{huge}, Recorded: true, Events: []explain.Event{{Last: now, Reason: "Failed", Note: huge}}})
	if len(text) > 10_000 || !strings.Contains(text, "much text") || !strings.Contains(text, "kubectl") {
		t.Errorf("the answer has %d bytes and begins\n%s", len(text), text[:min(len(text), 500)])
	}
}

// A thousand children that say the same are one line, and a thousand that differ are twenty.
func TestAThousandChildrenAreFolded(t *testing.T) {
	for name, c := range map[string]struct {
		trouble func(i int) string
		lines   int
		want    string
	}{
		"alike":     {func(int) string { return "the image cannot be pulled" }, 1, "999 more say the same"},
		"different": {func(i int) string { return fmt.Sprint("exit code ", i) }, 20, "980 more objects below it are in trouble"},
	} {
		t.Run(name, func(t *testing.T) {
			var below []explain.Part
			for i := range 1000 {
				o := runs.Object{Kind: "Pod", Namespace: "shop", Name: fmt.Sprint("web-", i)}
				below = append(below, explain.Part{Object: o, Depth: 1, Trouble: []string{c.trouble(i)}})
			}
			text := written(t, explain.Facts{State: state(), Recorded: true, Below: below})
			_, section, _ := strings.Cut(text, "IN TROUBLE BELOW IT\n")
			if n := strings.Count(section, "  Pod web-"); n != c.lines || !strings.Contains(section, c.want) {
				t.Errorf("%d Pods are named, want %d and %q:\n%s", n, c.lines, c.want, section)
			}
		})
	}
}

// A record that has dropped its oldest runs says since when it is complete.
func TestAnExpiredRecordSaysSinceWhen(t *testing.T) {
	text := written(t, explain.Facts{Recorded: true, Since: now.Add(-time.Hour), State: state()})
	if want := "NOT KNOWN\n  runs older than what is kept: since 2026-03-02T11:00:00Z\n"; !strings.Contains(text, want) {
		t.Errorf("the answer is\n%s\nwant %q", text, want)
	}
}

// What the rights of the user hide is counted.
func TestHiddenRunsAreCounted(t *testing.T) {
	for want, f := range map[string]explain.Facts{
		"what 1 run is about: the user may not get its object":                 {HiddenRuns: 1},
		"what 3 runs are about: the user may not get their objects":            {HiddenRuns: 3},
		"1 name of an object in the record: the user may not get that object":  {HiddenNames: 1},
		"7 names of objects in the record: the user may not get these objects": {HiddenRuns: 2, HiddenNames: 7},
	} {
		f.Recorded, f.State = true, state()
		if text := written(t, f); !strings.Contains(text, "NOT KNOWN") || !strings.Contains(text, want) {
			t.Errorf("the answer is\n%s\nwant %q", text, want)
		}
	}
}
