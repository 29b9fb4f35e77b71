// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const headOfTable = "| | Setpoint | peer | ratio | aim | |\n|---|---|---|---|---|---|\n"

// row is a line of a table: a median of each side and their ratio, each with what it is between.
type row struct {
	name                string
	unit                string
	ours, theirs, ratio spread
	aim                 string
	verdict             string
	rises               bool // more is better
}

// spread is a median with the least and the most of all turns, or of their middle half if there are many: the more turns, the further
// apart are their extremes, and the better is the median known.
type spread struct{ least, median, most float64 }

const manyTurns = 8

func spreadOf(all []float64) spread {
	if len(all) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(all))
	cut := 0
	if len(sorted) >= manyTurns {
		cut = len(sorted) / 4
	}
	return spread{sorted[cut], median(all), sorted[len(sorted)-1-cut]}
}

// width is how far turns are apart.
func (s spread) width() float64 { return s.most - s.least }

func (s spread) text(unit string, write func(float64) string) string {
	if s.least == s.most {
		return write(s.median) + unit
	}
	return fmt.Sprintf("%s%s (%s–%s)", write(s.median), unit, write(s.least), write(s.most))
}

func rowOf(m measure) row {
	r := row{name: m.name, unit: m.unit, ours: spreadOf(m.ours), theirs: spreadOf(m.theirs), aim: m.aim.String(), rises: m.rises()}
	if len(m.theirs) > 0 {
		r.ratio = ratios(m.ours, m.theirs)
		r.ratio.median = m.ratio()
		r.ratio.least, r.ratio.most = min(r.ratio.least, r.ratio.median), max(r.ratio.most, r.ratio.median)
	}
	switch {
	case m.held() && !m.aim.met(r.ours.median, r.ratio.median):
		r.verdict = "**missed**"
	case !m.held() && len(m.theirs) > 0 && r.loses():
		r.verdict = "**loses**"
	}
	return r
}

// ratios are those of turns: each with the turn of the peer beside it, if there are as many.
func ratios(ours, theirs []float64) spread {
	all := []float64{}
	for i, o := range ours {
		t := median(theirs)
		if len(ours) == len(theirs) {
			t = theirs[i]
		}
		if t != 0 {
			all = append(all, o/t)
		}
	}
	return spreadOf(all)
}

// loses reports whether the peer is better, in all turns that the spread has.
func (r *row) loses() bool {
	if r.rises {
		return r.ratio.most < 1
	}
	return r.ratio.least > 1
}

// String returns the line. The arrow says that more is better.
func (r *row) String() string {
	name := strings.ReplaceAll(r.name, "-", " ")
	if r.rises {
		name += " ↑"
	}
	unit := r.unit
	if unit != "" && unit != perSecond {
		unit = " " + unit
	}
	theirs, ratio, wanted := "", "", strings.TrimSuffix(r.aim, "x")
	if r.theirs != (spread{}) {
		theirs, ratio = r.theirs.text(unit, figure), r.ratio.text("", times)
	}
	if wanted == "none" {
		wanted = ""
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", name, r.ours.text(unit, figure), theirs, ratio, wanted, r.verdict)
}

// readFigure reads a median and what it is between, with a unit after the median.
var readFigure = regexp.MustCompile(`^([0-9.e+-]+)[^(]*(?:\(([0-9.e+-]+)–([0-9.e+-]+)\))?$`)

func spreadIn(text string) (s spread, ok bool) {
	m := readFigure.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return s, false
	}
	for i, into := range []*float64{&s.median, &s.least, &s.most} {
		var err error
		if *into, err = strconv.ParseFloat(cmp.Or(m[i+1], m[1]), 64); err != nil {
			return s, false
		}
	}
	return s, true
}

// rowsOf reads the lines of a table. What is no line of one is left out.
func rowsOf(table string) (rows []row) {
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 {
			continue
		}
		name, rises := strings.CutSuffix(strings.TrimSpace(cells[0]), " ↑")
		r := row{name: name, rises: rises, aim: strings.TrimSpace(cells[4]), verdict: strings.TrimSpace(cells[5])}
		var ok bool
		if r.ours, ok = spreadIn(cells[1]); !ok {
			continue
		}
		r.theirs, _ = spreadIn(cells[2])
		r.ratio, _ = spreadIn(cells[3])
		rows = append(rows, r)
	}
	return rows
}

// regressions compares two tables of a case: what got worse by more than the turns of either run are apart. Ratios are compared, as
// the speed of a machine drifts, and our figures where there is no peer. A figure of one turn has no spread, and is not compared.
func regressions(before, after []row) (worse []string) {
	for _, a := range after {
		i := slices.IndexFunc(before, func(b row) bool { return b.name == a.name })
		if i < 0 {
			continue
		}
		b := before[i]
		was, is, what, write := b.ratio, a.ratio, "ratio ", times
		if was == (spread{}) || is == (spread{}) {
			was, is, what, write = b.ours, a.ours, "", figure
		}
		by, apart := is.median-was.median, max(was.width(), is.width())
		if a.rises {
			by = -by
		}
		if apart > 0 && by > apart {
			worse = append(worse, fmt.Sprintf("%s: %s%s, and was %s", a.name, what, is.text("", write), was.text("", write)))
		}
	}
	return worse
}
