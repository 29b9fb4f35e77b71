// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tables of a page are written anew, and its text stays. The case is a real one, with little to do.
func TestAPageGetsItsFigures(t *testing.T) {
	const command = "queue --keys 10 --ops 100 --turns 2"
	path := filepath.Join(t.TempDir(), "page.md")
	before := "# Figures\n\n<!-- bench: " + command + " -->\n<!-- end of bench -->\n\nA word about them.\n"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a table takes the place of a table
		if err := run(t.Context(), []string{"figures", "--page", path}, io.Discard); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"# Figures\n\n<!-- bench: ", "`go run . " + command + "`: ", "10 keys, 100 operations in each of 2 turns", headOfTable,
			"| object key ", "load average before", "<!-- end of bench -->\n\nA word about them.\n"} {
			if strings.Count(string(text), want) < 1 || want == headOfTable && strings.Count(string(text), want) != 1 {
				t.Errorf("the page has not %q, or more than once:\n%s", want, text)
			}
		}
		if rows := rowsOf(string(text)); len(rows) < 10 {
			t.Errorf("%d rows can be read from the page", len(rows))
		}
	}
}

// A case that fails leaves its table as it was, and the others are measured.
func TestACaseThatFailsLeavesItsTable(t *testing.T) {
	const fails, works = "queue --turns 0", "queue --keys 10 --ops 100 --turns 1"
	path := filepath.Join(t.TempDir(), "page.md")
	table := "<!-- bench: " + fails + " -->\nas it was\n<!-- end of bench -->\n"
	if err := os.WriteFile(path, []byte(table+"<!-- bench: "+works+" -->\n<!-- end of bench -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"figures", "--page", path}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), fails) {
		t.Errorf("the error is %v", err)
	}
	if text, _ := os.ReadFile(path); !strings.HasPrefix(string(text), table) || !strings.Contains(string(text), headOfTable) {
		t.Errorf("the page is\n%s", text)
	}
}

func TestAPageThatIsWrongIsRefused(t *testing.T) {
	block := func(command string) string { return "<!-- bench: " + command + " -->\n<!-- end of bench -->\n" }
	for text, want := range map[string]string{
		"# Figures\n":                          "there is no table",
		block("quue"):                          `there is no case "quue"`,
		block("queue") + block("queue"):        "twice",
		"<!-- bench: queue -->\n":              "around each table",
		block("queue") + "<!-- bench:loop -->": "around each table",
	} {
		path := filepath.Join(t.TempDir(), "page.md")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(t.Context(), []string{"figures", "-n", "--page", path}, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %q", text, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(block("queue")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"figures", "-n", "--page", path, "--only", "loop"}, io.Discard); err == nil || !strings.Contains(err.Error(), `begins with "loop"`) {
		t.Errorf("the error is %v", err)
	}
}

// The page that is checked in names cases that are there, with flags that they have.
func TestThePageNamesCases(t *testing.T) {
	commands, err := commandsOf(filepath.Join("..", "docs", "performance.md"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		if err := run(t.Context(), append(strings.Fields(command), "-h"), io.Discard); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("go run . %s: %v", command, err)
		}
		if err := caseOfManager(command); err != nil {
			t.Error(err)
		}
	}
}

func TestARowSaysMediansAndSpread(t *testing.T) {
	for _, c := range []struct {
		m    measure
		want string
	}{
		{measure{name: "cpu-of-a-pod", unit: "µs", aim: aim{most: 0.5}, ours: []float64{2, 1, 3}, theirs: []float64{4, 2, 4}},
			"| cpu of a pod | 2.00 µs (1.00–3.00) | 4.00 µs (2.00–4.00) | 0.50 (0.50–0.75) | ≤0.50 |  |\n"},
		{measure{name: "rate", unit: perSecond, aim: aim{least: 4}, ours: []float64{300}, theirs: []float64{100}}, "| rate ↑ | 300/s | 100/s | 3.00 | ≥4.00 | **missed** |\n"},
		{measure{name: "list", unit: "ms", ours: []float64{6, 7}, theirs: []float64{1, 1}}, "| list | 6.50 ms (6.00–7.00) | 1.00 ms | 6.50 (6.00–7.00) |  | **loses** |\n"},
		{measure{name: "list", unit: "ms", ours: []float64{1, 2}, theirs: []float64{2, 1}}, "| list | 1.50 ms (1.00–2.00) | 1.50 ms (1.00–2.00) | 1.00 (0.50–2.00) |  |  |\n"},
		{measure{name: "rate", unit: perSecond, ours: []float64{6}, theirs: []float64{7}}, "| rate ↑ | 6.00/s | 7.00/s | 0.86 |  | **loses** |\n"},
		{measure{name: "lost", aim: aim{none: true}, ours: []float64{1}}, "| lost | 1.00 |  |  | 0 | **missed** |\n"},
		{measure{name: "many", unit: "ns", ours: []float64{9, 1, 2, 3, 4, 5, 6, 7, 8, 90}}, "| many | 5.50 ns (3.00–8.00) |  |  |  |  |\n"},
		{measure{name: "answer", unit: "ms", aim: aim{value: 300}, ours: []float64{20}}, "| answer | 20.00 ms |  |  | ≤300 |  |\n"},
	} {
		r := rowOf(c.m)
		got := r.String()
		if got != c.want {
			t.Errorf("%swant %s", got, c.want)
		}
		read := rowsOf(headOfTable + got)
		if len(read) != 1 || read[0].String() == "" || read[0].rises != c.m.rises() || read[0].verdict != r.verdict || figure(read[0].ours.most) != figure(r.ours.most) ||
			times(read[0].ratio.least) != times(r.ratio.least) {
			t.Errorf("%sis read as %+v", got, read)
		}
	}
}

func TestWhatGotWorseIsSaid(t *testing.T) {
	table := func(rows ...string) []row { return rowsOf(headOfTable + strings.Join(rows, "\n")) }
	before := table(
		"| cpu | 2.00 µs (1.90–2.10) | 4.00 µs | 0.50 (0.48–0.52) | ≤0.50 |  |",
		"| rate ↑ | 300/s (290–310) | 100/s | 3.00 (2.90–3.10) |  |  |",
		"| answer | 20.00 ms (19.00–21.00) |  |  | ≤300 |  |",
		"| once | 20.00 ms | 20.00 ms | 1.00 |  |  |",
		"| gone | 1.00 | 2.00 | 0.50 (0.4–0.6) |  |  |")
	for _, c := range []struct {
		after string
		want  []string
	}{
		{"| cpu | 2.00 µs | 4.00 µs | 0.53 (0.52–0.54) | ≤0.50 |  |", nil},
		{"| cpu | 9.00 µs | 18.00 µs | 0.50 (0.50–0.51) | ≤0.50 |  |", nil}, // the machine is slower, for both
		{"| cpu | 2.00 µs | 4.00 µs | 0.56 (0.55–0.57) | ≤0.50 |  |", []string{"cpu: ratio 0.56 (0.55–0.57), and was 0.50 (0.48–0.52)"}},
		{"| cpu | 2.00 µs | 4.00 µs | 0.56 (0.49–0.60) | ≤0.50 |  |", nil}, // the turns are further apart than that
		{"| cpu | 2.00 µs | 4.00 µs | 0.40 (0.39–0.41) | ≤0.50 |  |", nil},
		{"| rate ↑ | 300/s | 100/s | 2.50 (2.40–2.60) |  |  |", []string{"rate: ratio 2.50 (2.40–2.60), and was 3.00 (2.90–3.10)"}},
		{"| rate ↑ | 300/s | 100/s | 3.50 (3.40–3.60) |  |  |", nil},
		{"| answer | 25.00 ms (24.00–26.00) |  |  | ≤300 |  |", []string{"answer: 25.00 (24.00–26.00), and was 20.00 (19.00–21.00)"}},
		{"| once | 40.00 ms | 20.00 ms | 2.00 |  |  |", nil}, // without a spread
		{"| new | 40.00 ms | 20.00 ms | 2.00 |  |  |", nil},
	} {
		if got := regressions(before, table(c.after)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.after, got, c.want)
		}
	}
}

// What stands in a page by hand, or was damaged, is read without a panic, and a row that is read reads the same once written.
func FuzzRowsOfAPage(f *testing.F) {
	f.Add("| a | 2.00 µs (1.00–3.00) | 4.00 | 0.50 (0.50–0.75) | ≤0.50 |  |\n")
	f.Add("|||||||\n| a | 1e999 | | | | |\n| b | - | + | ( | – | . |")
	f.Fuzz(func(t *testing.T, text string) {
		rows := rowsOf(text)
		regressions(rows, rows)
		for _, r := range rows {
			if math.IsNaN(r.ours.median) {
				t.Errorf("%q has a figure that is none", text)
			}
		}
	})
}
