// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
)

// measure collects one figure of Setpoint and of its peer over several turns.
type measure struct {
	name   string
	unit   string
	aim    aim
	ours   []float64
	theirs []float64
}

// perSecond is the unit of rates, of which more is better. Of every other figure less is better, unless its aim says otherwise.
const perSecond = "/s"

// collector is an output that gets the measures too, and not only their lines.
type collector interface {
	collect(m *measure)
}

// rises reports whether more is better.
func (m *measure) rises() bool { return m.aim.least > 0 || m.unit == perSecond }

// aim is what a ratio is held against.
type aim struct {
	most  float64 // ratio at most; 0: not used
	least float64 // ratio at least; 0: not used
	value float64 // our figure at most, whatever the peer's; 0: not used
	none  bool    // our figure is 0
}

func (a aim) String() string {
	switch {
	case a.none:
		return "0"
	case a.value > 0:
		return fmt.Sprintf("≤%g", a.value)
	case a.most > 0:
		return "≤" + times(a.most) + "x"
	case a.least > 0:
		return "≥" + times(a.least) + "x"
	}
	return "none"
}

func (a aim) met(ours, ratio float64) bool {
	switch {
	case a.none:
		return ours == 0
	case a.value > 0:
		return ours <= a.value
	case a.most > 0:
		return ratio <= a.most
	case a.least > 0:
		return ratio >= a.least
	}
	return true
}

// ratio is Setpoint's median over the peer's; 0 if there is no peer.
func (m *measure) ratio() float64 {
	if theirs := median(m.theirs); theirs != 0 {
		return median(m.ours) / theirs
	}
	return 0
}

// held reports whether the measure has an aim, and what that needs.
func (m *measure) held() bool {
	return m.aim != aim{} && (m.aim.value > 0 || m.aim.none || len(m.theirs) > 0)
}

// print writes the line of a measure, and with verbose the figures behind it.
func (m *measure) print(w io.Writer, verbose bool) {
	if c, ok := w.(collector); ok {
		c.collect(m)
	}
	ours, theirs, ratio := median(m.ours), median(m.theirs), m.ratio()
	verdict := "short"
	switch {
	case !m.held():
		verdict = "told"
	case m.aim.met(ours, ratio):
		verdict = "ok"
	}
	peer, against := "none", "none"
	if len(m.theirs) > 0 {
		peer, against = figure(theirs)+m.unit, times(ratio)
	}
	fmt.Fprintf(w, "%-40s setpoint=%s%s peer=%s ratio=%s aim=%s %s\n",
		m.name, figure(ours), m.unit, peer, against, m.aim, verdict)
	if verbose {
		fmt.Fprintf(w, "    setpoint %v\n    peer     %v\n", m.ours, m.theirs)
	}
}

// times writes a ratio, small ones with two digits that count.
func times(ratio float64) string {
	if ratio < 0.1 {
		return fmt.Sprintf("%.2g", ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}

func figure(f float64) string {
	if f >= 100 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
