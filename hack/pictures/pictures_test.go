// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden file anew")

func mustScreen(t *testing.T, sent string, columns int) [][]cell {
	t.Helper()
	lines, err := screen(sent, columns)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// texts are the lines without their styles.
func texts(lines [][]cell) []string {
	var out []string
	for _, line := range lines {
		var b strings.Builder
		for _, c := range line {
			b.WriteString(c.text)
		}
		out = append(out, b.String())
	}
	return out
}

func TestScreenShowsWhatATerminalShows(t *testing.T) {
	for name, test := range map[string]struct {
		sent string
		want []string
	}{
		"nothing":                    {"", nil},
		"lines of a terminal":        {"a\r\nb\r\n\r\nc", []string{"a", "b", "", "c"}},
		"a line that fits":           {"0123456789\nb", []string{"0123456789", "b"}},
		"a line that does not":       {"0123456789ab\nc", []string{"0123456789", "ab", "c"}},
		"colours":                    {"\x1b[31mred\x1b[0m \x1b[0;2mdim\x1b[m", []string{"red dim"}},
		"a wide character that fits": {"01234567日\n", []string{"01234567日"}},
		"one that does not":          {"012345678日", []string{"012345678", "日"}},
		"an accent of its own":       {"e\u0301日\u0301", []string{"e\u0301日\u0301"}},
		"a tab":                      {"a\tb", []string{"a       b"}},
		"characters of markup":       {"<a href=\"&\">", []string{"<a href=\"&", "\">"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := texts(mustScreen(t, test.sent, 10)); !slices.Equal(got, test.want) {
				t.Errorf("shown: %q, want %q", got, test.want)
			}
		})
	}
}

func TestScreenGivesEachCellItsStyle(t *testing.T) {
	line := mustScreen(t, "a\x1b[32mb日\x1b[0m\x1b[1;2mc\x1b[md", 80)[0]
	want := []cell{
		{text: "a"}, {text: "b", style: style{colour: 32}}, {text: "日", style: style{colour: 32}}, {style: style{colour: 32}},
		{text: "c", style: style{bold: true, dim: true}}, {text: "d"},
	}
	if !slices.Equal(line, want) {
		t.Errorf("cells %+v, want %+v", line, want)
	}
}

func TestScreenRefusesWhatItCannotDraw(t *testing.T) {
	for _, sent := range []string{"\x1b[2J", "\x1b]0;title\a", "\x1b[38;5;1mx", "\x1b[7mx", "\a", "\u009b31m", "\xff", "\x1b"} {
		if lines, err := screen(sent, 80); err == nil {
			t.Errorf("%q is drawn as %q, want an error", sent, texts(lines))
		}
	}
}

func TestRunsKeepTheirColumns(t *testing.T) {
	line := mustScreen(t, "  a b  c\x1b[31m d \x1b[0m日 e ", 80)[0]
	want := []run{
		{2, 5, "a b", style{}}, {7, 8, "c", style{}}, {9, 10, "d", style{colour: 31}}, {11, 15, "日 e", style{}},
	}
	if got := runs(line); !slices.Equal(got, want) {
		t.Errorf("runs %+v, want %+v", got, want)
	}
}

func TestDrawnAsBefore(t *testing.T) {
	sent := "\x1b[2m10:24:00.000\x1b[0m  \x1b[32mcreated \x1b[0m  a<b>  \"x\" & 日本 → y\x1b[2m (by 'me')\x1b[0m\r\n" +
		"\x1b[31m- a\x1b[0m \x1b[33m~ b\x1b[0m \x1b[35mc\x1b[0m \x1b[36md\x1b[0m \x1b[1me\x1b[0m\r\n"
	got := draw(picture{title: "a & b", about: "<what>", columns: 60, lines: mustScreen(t, sent, 60)})
	const file = "testdata/picture.svg"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("drawn:\n%s\nwant (go test -update writes it anew):\n%s", got, want)
	}
}

// What is in the repository is what people see: that it is XML, loads nothing and is small.
func TestPicturesOfTheDocumentsStandAlone(t *testing.T) {
	for _, s := range scenes {
		b, err := os.ReadFile("../../docs/pictures/" + s.file)
		if err != nil {
			t.Fatal(err)
		}
		if most := 60_000; len(b) > most {
			t.Errorf("%s: %d bytes, want %d at most", s.file, len(b), most)
		}
		elements := map[string]int{}
		for d := xml.NewDecoder(strings.NewReader(string(b))); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", s.file, err)
			}
			if e, ok := token.(xml.StartElement); ok {
				elements[e.Name.Local]++
			}
		}
		for name := range elements {
			if !slices.Contains([]string{"svg", "title", "desc", "rect", "path", "circle", "g", "text"}, name) {
				t.Errorf("%s: has an element %s", s.file, name)
			}
		}
		if elements["text"] < 20 {
			t.Errorf("%s: has %d texts", s.file, elements["text"])
		}
		// What the story is for.
		for _, want := range []string{"nginx:1.28 → nginx:1.29", "3 → 5", "data.password", "had replicas 5"} {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s: does not show %q", s.file, want)
			}
		}
		for _, secret := range []string{"second", "c2Vjb25k"} {
			if strings.Contains(string(b), secret) {
				t.Errorf("%s: shows a password", s.file)
			}
		}
	}
}

func TestTimesAreEven(t *testing.T) {
	shown := "\x1b[2m01:02:03.456\x1b[0m a 09:09:09.999\r\n  \x1b[2m05:05:05.555\x1b[0m b\r\n\x1b[2m01:02:04.000\x1b[0m c\r\n"
	want := "\x1b[2m10:24:06.080\x1b[0m a 09:09:09.999\r\n  \x1b[2m05:05:05.555\x1b[0m b\r\n\x1b[2m10:24:06.091\x1b[0m c\r\n"
	if got := even(shown, time.Date(2026, 3, 4, 10, 24, 6, 0, time.UTC)); got != want {
		t.Errorf("even: %q, want %q", got, want)
	}
}

func TestCommandLinesCanBeTyped(t *testing.T) {
	if got, want := commandLine([]string{"cm", "--where", `a != "b"`}), `setpoint watch cm --where 'a != "b"'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
