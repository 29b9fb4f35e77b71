// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
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
		"nothing":                      {"", nil},
		"lines of a terminal":          {"a\r\nb\r\n\r\nc", []string{"a", "b", "", "c"}},
		"a line that fits":             {"0123456789\nb", []string{"0123456789", "b"}},
		"a line that does not":         {"0123456789ab\nc", []string{"0123456789", "ab", "c"}},
		"colours":                      {"\x1b[31mred\x1b[0m \x1b[0;2mdim\x1b[m", []string{"red dim"}},
		"a wide character that fits":   {"01234567日\n", []string{"01234567日"}},
		"one that does not":            {"012345678日", []string{"012345678", "日"}},
		"an accent of its own":         {"e\u0301日\u0301", []string{"e\u0301日\u0301"}},
		"a tab":                        {"a\tb", []string{"a       b"}},
		"a line that is written again": {"  a 1 s\r\x1b[K  a 2 s\r\x1b[K✓ a\r\nb", []string{"✓ a", "b"}},
		"a line that is written over":  {"abc\rd\r\ne", []string{"dbc", "e"}},
		"characters of markup":         {"<a href=\"&\">", []string{"<a href=\"&", "\">"}},
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
	lines := still(mustScreen(t, sent, 60))
	drawnAs(t, "testdata/picture.svg", picture{title: "a & b", about: "<what>", panes: []pane{{columns: 60, rows: len(lines), lines: lines}}})
}

func TestAPictureThatPlaysIsDrawnAsBefore(t *testing.T) {
	m := &film{names: map[string]string{}}
	first, beside, below := pane{columns: 20}, pane{left: 22, columns: 20}, pane{columns: 42}
	m.play(&first, "a b", "one\r\ntwo\r\n", 500*time.Millisecond)
	m.play(&beside, "c", "three\n", 0)
	m.play(&below, "d", "four\n", 0)
	if m.err != nil {
		t.Fatal(m.err)
	}
	first.rows, beside.rows, below.top, below.rows = 3, 3, 4, 2
	drawnAs(t, "testdata/playing.svg", picture{title: "a", about: "b", panes: []pane{first, beside, below}, lasts: m.now + time.Second})
}

// drawnAs compares a picture with a golden file.
func drawnAs(t *testing.T, file string, p picture) {
	t.Helper()
	got := draw(p)
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
	inStory := []string{"nginx:1.28 → nginx:1.29", "3 → 5", "data.password", "had replicas 5"}
	for file, test := range map[string]struct {
		most int
		want []string
	}{
		minuteFile:       {150_000, []string{"kube-apiserver", "The cluster is ready after", "deployment.apps/web created", "statefulset.apps/", "job.batch/", "replicas 1 → 3", "prefers-reduced-motion"}},
		"watch.svg":      {60_000, inStory},
		"watch-diff.svg": {60_000, inStory},
	} {
		b, err := os.ReadFile("../../docs/pictures/" + file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if len(b) > test.most {
			t.Errorf("%s: %d bytes, want %d at most", file, len(b), test.most)
		}
		elements := elementsOf(t, file, text)
		for name := range elements {
			if !slices.Contains([]string{"svg", "title", "desc", "style", "rect", "path", "circle", "g", "text"}, name) {
				t.Errorf("%s: has an element %s", file, name)
			}
		}
		if elements["text"] < 20 {
			t.Errorf("%s: has %d texts", file, elements["text"])
		}
		for _, want := range test.want {
			if !strings.Contains(text, want) && !strings.Contains(textsOf(t, file, text), want) {
				t.Errorf("%s: does not show %q", file, want)
			}
		}
		for _, no := range []string{"second<", "c2Vjb25k", "url(", "@import", "href"} {
			if strings.Contains(text, no) {
				t.Errorf("%s: has %q, a password or something that is loaded", file, no)
			}
		}
	}
}

// textsOf are the texts of a picture, a line each.
func textsOf(t *testing.T, file, svg string) string {
	t.Helper()
	var b strings.Builder
	inText := false
	eachToken(t, file, svg, func(token xml.Token) {
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
		case xml.CharData:
			if inText {
				b.WriteString(string(token))
			}
		}
	})
	return b.String()
}

func elementsOf(t *testing.T, file, svg string) map[string]int {
	t.Helper()
	elements := map[string]int{}
	eachToken(t, file, svg, func(token xml.Token) {
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	})
	return elements
}

func eachToken(t *testing.T, file, svg string, f func(xml.Token)) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		f(token)
	}
}

// luminance is the relative luminance of a colour such as "#0d1117".
// Source: WCAG 2.2, https://www.w3.org/TR/WCAG22/#dfn-relative-luminance.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	bits, err := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 24)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(shift int) float64 {
		c := float64(bits>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
}

func TestTextCanBeReadInBothThemes(t *testing.T) {
	for name, theme := range map[string]theme{"dark": dark, "light": light} {
		behind := luminance(t, theme.background)
		for _, colour := range append(slices.Collect(maps.Values(theme.colours)), theme.foreground, theme.dimmed) {
			text := luminance(t, colour)
			if contrast := (max(text, behind) + 0.05) / (min(text, behind) + 0.05); contrast < 4.5 {
				t.Errorf("%s: the contrast of %s is %.2f, want 4.5", name, colour, contrast)
			}
		}
	}
}

func TestNamesMadeAtRandomAreTheSameInEachPicture(t *testing.T) {
	m := &film{names: map[string]string{}}
	got := m.steady("web-5fc9f4bf66-klfbx web-5fc9f4bf66-jrtpl /var/tmp/x/setpoint-controlplane-12/kubeconfig web-5fc9f4bf66-klfbx web-5fc9f4bf66")
	want := "web-5fc9f4bf66-x2v9k web-5fc9f4bf66-hd7qp /tmp/setpoint-controlplane-627709898/kubeconfig web-5fc9f4bf66-x2v9k web-5fc9f4bf66"
	if got != want {
		t.Errorf("steady: %s, want %s", got, want)
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
	if got, want := commandLine("setpoint", "watch", "cm", "--where", `a != "b"`), `setpoint watch cm --where 'a != "b"'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
