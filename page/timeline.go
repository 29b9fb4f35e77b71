// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/runs"
)

// timeline shows when an object and those below it were there, and when controllers ran for them.
type timeline struct {
	From, To time.Time
	Lines    []lifeline
	Ticks    []tick
	More     int // objects that have no line
	At       int // the place of the chosen time; 0: none is chosen
	Width    int
	Height   int
	Unknown  string // from when on the record has the runs; empty: it has them all
	Scrubber scrubber
}

// scrubber chooses a time of the timeline, by keys or with the mouse. Its values are milliseconds since 1970.
type scrubber struct {
	Min, Max, Step, Value int64
	Text                  string // of the value
	Run                   string // the run that stays open
}

// lifeline is an object in the timeline.
type lifeline struct {
	Name    string
	Y, BarY int
	Bar     []segment // from its creation, or the beginning of the timeline, on
	Dots    []dot
}

// dot is a run, or several that are too close to each other to be drawn apart.
type dot struct {
	X, Y, R int
	Link    string
	Text    string
	Failed  bool
}

// tick is a time on the axis.
type tick struct {
	X    int
	Text string
}

// moment is what was known at a chosen time.
type moment struct {
	At             time.Time
	Earlier, Later string // addresses of the runs before and after; empty: there is none
	Now            string // the address without the time
	Lines          []momentLine
	Unknown        string
}

// momentLine is the last run of a controller by then.
type momentLine struct {
	Controller string
	Run        uint64
	Link       string
	Text       string
	began      time.Time
}

// Sizes of the timeline, in units of CSS pixels.
const (
	timeWidth  = 1000
	timeLabel  = 220 // of the names at the left
	timeRow    = 26
	timeTop    = 26
	timeDot    = 5
	timeNarrow = 2 * timeDot // dots that are closer are one
)

// Bounds of the timeline.
const (
	mostLines   = 10
	longestTime = 24 * time.Hour
	leastTime   = time.Minute
	timeTicks   = 6
)

// timelineOf draws the timeline, and says what was known at the chosen time.
func timelineOf(t *told, self string, chosen choice) (*timeline, *moment) {
	if t.facts.State == nil && len(t.facts.Runs) == 0 {
		return nil, nil
	}
	d := drawing{told: t, self: self, to: t.facts.Now, chosen: chosen}
	d.from = d.beginning()
	line := &timeline{From: d.from, To: d.to, Width: timeWidth}
	line.add(&d, t.facts.Object, t.facts.State, len(t.facts.Trouble) > 0 || markOf(t.answer.Code) == trouble())
	for i := range t.facts.Below {
		part := &t.facts.Below[i]
		if len(line.Lines) > mostLines {
			line.More++
			continue
		}
		line.add(&d, part.Object, part.State, len(part.Trouble) > 0)
	}
	if !t.facts.Since.IsZero() && t.facts.Since.After(d.from) {
		line.Unknown = "not recorded: runs before " + t.facts.Since.Local().Format(time.TimeOnly)
	}
	line.Scrubber = d.scrubber()
	line.Height = timeTop + timeRow*len(line.Lines) + 4
	for i := range timeTicks {
		at := d.from.Add(d.to.Sub(d.from) * time.Duration(i) / (timeTicks - 1))
		text := at.Local().Format(time.TimeOnly)
		if i == timeTicks-1 {
			text = "now"
		}
		line.Ticks = append(line.Ticks, tick{X: d.x(at), Text: text})
	}
	if chosen.at.IsZero() {
		return line, nil
	}
	line.At = d.x(chosen.at)
	return line, d.moment()
}

// drawing has what places need.
type drawing struct {
	*told
	self     string
	from, to time.Time
	chosen   choice
}

// beginning returns where the timeline begins: some time before the first of the chain and the runs.
func (d *drawing) beginning() time.Time {
	first := d.to.Add(-leastTime)
	for _, s := range d.answer.Chain {
		first = earlier(first, s.At)
	}
	for i := range d.facts.Runs {
		first = earlier(first, d.facts.Runs[i].Began)
	}
	first = first.Add(-d.to.Sub(first) / 20)
	if oldest := d.to.Add(-longestTime); first.Before(oldest) {
		return oldest
	}
	return first
}

func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// x returns the place of a time.
func (d *drawing) x(at time.Time) int {
	part := float64(at.Sub(d.from)) / float64(d.to.Sub(d.from))
	return timeLabel + int(min(max(part, 0), 1)*float64(timeWidth-timeLabel-timeDot-1))
}

// add adds the line of an object.
func (l *timeline) add(d *drawing, o runs.Object, state map[string]any, wrong bool) {
	y := timeTop + timeRow*len(l.Lines)
	line := lifeline{Name: plain(o.Kind + " " + o.Name), Y: y + timeRow/2 + 4, BarY: y + 6, Bar: d.bar(o, state, wrong)}
	line.Dots = d.dots(o, y+timeRow/2)
	l.Lines = append(l.Lines, line)
}

// dots returns the runs for an object as dots, the oldest first.
func (d *drawing) dots(o runs.Object, y int) (dots []dot) {
	for i := len(d.facts.Runs) - 1; i >= 0; i-- { // the newest run is the first one
		run := &d.facts.Runs[i].Run
		if !isFor(run, o) || run.Began.Before(d.from) {
			continue
		}
		x := d.x(run.Began)
		text := plain(fmt.Sprintf("%s  %s, run %d: %s", run.Began.Local().Format(time.TimeOnly), run.Controller, run.Number, momentText(run)))
		if n := len(dots); n > 0 && x-dots[n-1].X < timeNarrow {
			dots[n-1].Text += "\n" + text
			dots[n-1].Failed = dots[n-1].Failed || run.Error != ""
			continue
		}
		dots = append(dots, dot{X: x, Y: y, R: timeDot, Text: text, Failed: run.Error != "", Link: d.self + choice{at: run.Began, run: idOf(run.Number, run.Began)}.query()})
	}
	return dots
}

// moment says what was known at the chosen time: the last run of each controller and key by then, and the runs beside it.
func (d *drawing) moment() *moment {
	at := d.chosen.at
	m := &moment{At: at, Now: d.self + choice{run: d.chosen.run}.query()}
	type loop struct{ controller, key string }
	seen := map[loop]bool{}
	for i := range d.facts.Runs { // the newest first
		run := &d.facts.Runs[i].Run
		link := d.self + choice{at: run.Began, run: idOf(run.Number, run.Began)}.query()
		switch {
		case run.Began.After(at):
			m.Later = link // of those after it, the last in this order is the nearest
			continue
		case run.Began.Before(at) && m.Earlier == "":
			m.Earlier = link
		}
		if of := (loop{run.Controller, run.Key}); !seen[of] {
			seen[of] = true
			m.Lines = append(m.Lines, momentLine{Controller: run.Controller, Run: run.Number, Link: link, Text: plain(momentText(run)), began: run.Began})
		}
	}
	if since := d.facts.Since; !since.IsZero() && at.Before(since) {
		m.Unknown = "not recorded: runs before " + since.Local().Format(time.TimeOnly)
	}
	slices.SortStableFunc(m.Lines, func(a, b momentLine) int { return cmp.Or(b.began.Compare(a.began), cmp.Compare(b.Run, a.Run)) })
	return m
}

// momentText says how a run left its key.
func momentText(run *runs.Run) string {
	text := run.Key + ": "
	switch {
	case run.Error != "":
		return text + "failed: " + run.Error
	case len(run.Reasons) > 0:
		return text + run.Reasons[0].String()
	case len(run.Writes) > 0:
		return text + counted(len(run.Writes)+run.MoreWrites, "write")
	}
	return text + "nothing to do"
}
