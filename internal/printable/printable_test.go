// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package printable_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/setpoint-io/setpoint/internal/printable"
)

// hostile has an escape sequence, C1 controls, a change of direction, the end of a tag, and a byte that is no UTF-8.
const hostile = "a\x1b[31m\u009b2J\u202e\u2066b</script>\x7f\xff\U000E0001ä\u2028"

func steers(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }

func TestTextHasNothingThatSteersATerminal(t *testing.T) {
	if text := printable.Text(hostile); text != `a\x1b[31m\u009b2J\u202e\u2066b</script>\x7f\xff\U000e0001ä\u2028` {
		t.Errorf("the text is %s", text)
	}
	if text := printable.Text("plain\ntext ä"); text != "plain\ntext ä" {
		t.Errorf("plain text became %q", text)
	}
	if text := printable.Line("one\r\ntwo\tthree"+strings.Repeat("ä", 100), 20); text != "one two three"+"äää …" {
		t.Errorf("the line is %q", text)
	}
}

// JSON keeps its meaning, and an indented document its form.
func FuzzJSON(f *testing.F) {
	f.Add(hostile)
	f.Fuzz(func(t *testing.T, value string) {
		encoded, err := json.MarshalIndent(map[string]string{"k": value}, "", "\t")
		if err != nil {
			t.Skip()
		}
		safe := printable.JSON(encoded)
		if bytes.ContainsFunc(safe, func(r rune) bool { return r != '\t' && steers(r) }) {
			t.Fatalf("%q has a character that steers a terminal", safe)
		}
		var before, after map[string]string
		if err := json.Unmarshal(encoded, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(safe, &after); err != nil || before["k"] != after["k"] {
			t.Errorf("%q became %q (%v)", before["k"], after["k"], err)
		}
		if line := printable.Line(value, 30); strings.ContainsFunc(line, steers) || strings.Contains(line, "\n") {
			t.Errorf("the line %q", line)
		}
	})
}
