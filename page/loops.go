// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// loopsView is the view of all loops.
type loopsView struct {
	AsOf    time.Time
	Notices []loopsNotice
	Unknown string // why nothing is known
	Several bool   // the rows name their managers
	Idle    bool   // no manager works
	Cards   []card // loops that need attention, the worst first
	Rows    []loopRow
	Rate    string
	Spark   *spark
}

// card is a loop that needs attention.
type card struct {
	Loop    string
	Manager string // whose loop it is, if there are several
	Texts   []string
	Keys    []keyLink
	More    int // keys that are not shown
}

// keyLink is a key, with the address of its object if it stands for one.
type keyLink struct {
	Text string
	Link string
	Note string
}

// loopRow is a loop in the table.
type loopRow struct {
	Name                                    string
	Manager                                 string // whose loop it is, if there are several
	Mark                                    mark
	Waiting, Levels, Oldest, Rate, P50, P99 string
	Delayed, Held, Failing, GivenUp         int
	Cache, Heard                            string
	Spark                                   *spark

	trouble int // how bad it is, for sorting
	waiting int
}

// mark is a state as a shape and a word. The color comes third.
type mark struct{ Shape, Word, Class string }

// The marks.
func well() mark    { return mark{"●", "well", "well"} }
func trouble() mark { return mark{"▲", "needs attention", "trouble"} }
func unsure() mark  { return mark{"○", "not known", "unsure"} }

// Levels of trouble of a loop.
const (
	noTrouble = iota
	waitsLong
	runsFail
	cacheNotCurrent
)

// Limits of what is normal.
const (
	longWait = 10 * time.Second // a key that waits longer for a worker needs attention
	mostKeys = 3                // shown on a card
)

// viewLoops makes the view of the loops of all managers.
func viewLoops(states *States, h *history) loopsView {
	v := loopsView{Notices: notices(states), Several: len(states.Known) > 1}
	if len(states.Known) > 0 {
		v.AsOf = states.Known[0].AsOf
	}
	v.Idle = !othersWork(states, -1)
	var all recent
	for i := range states.Known {
		s := &states.Known[i]
		for k := range s.Loops {
			if l := &s.Loops[k]; !standsByFor(states, i, l.Name) {
				r := h.of(s, l, v.AsOf)
				all.add(&r)
				v.add(s, l, &r)
			}
		}
	}
	v.Rate, v.Spark = shortRate(all.now), sparkOf(all.rates, 120, 24)
	slices.SortStableFunc(v.Rows, func(a, b loopRow) int {
		return cmp.Or(cmp.Compare(b.trouble, a.trouble), cmp.Compare(b.waiting, a.waiting), cmp.Compare(a.Name, b.Name))
	})
	place := map[loopID]int{}
	for i := range v.Rows {
		place[loopID{v.Rows[i].Manager, v.Rows[i].Name}] = i
	}
	slices.SortStableFunc(v.Cards, func(a, b card) int {
		return cmp.Compare(place[loopID{a.Manager, a.Loop}], place[loopID{b.Manager, b.Loop}])
	})
	return v
}

// add adds a loop of a manager.
func (v *loopsView) add(s *State, l *manager.LoopView, r *recent) {
	row := rowOf(&s.Overview, l, r)
	if v.Several {
		row.Manager = nameOf(s)
	}
	texts := troubles(&s.Overview, l, &row)
	if row.trouble > noTrouble {
		row.Mark = trouble()
		v.Cards = append(v.Cards, card{Loop: l.Name, Manager: row.Manager, Texts: texts, Keys: failedKeys(s.AsOf, l), More: max(0, l.Failing+l.GivenUp-mostKeys)})
	}
	v.Rows = append(v.Rows, row)
}

// add adds what another loop did. The newest steps of both are the same ones.
func (r *recent) add(other *recent) {
	r.now += other.now
	for len(r.rates) < len(other.rates) {
		r.rates = append([]float64{0}, r.rates...)
	}
	for i, rate := range other.rates {
		r.rates[len(r.rates)-len(other.rates)+i] += rate
	}
}

// rowOf returns the row of a loop, with nothing said of trouble.
func rowOf(o *manager.Overview, l *manager.LoopView, r *recent) loopRow {
	row := loopRow{
		Name: l.Name, Mark: well(), Oldest: "–", Rate: shortRate(r.now), P50: "–", P99: "–",
		Delayed: l.Delayed, Held: l.Held, Failing: l.Failing, GivenUp: l.GivenUp, Spark: sparkOf(r.rates, 60, 16),
	}
	var oldest time.Time
	var levels []string
	for _, level := range l.Waiting {
		row.waiting += level.Keys
		levels = append(levels, fmt.Sprintf("%s %d", priorityName(level.Priority), level.Keys))
		if oldest.IsZero() || level.Oldest.Before(oldest) {
			oldest = level.Oldest
		}
	}
	row.Waiting = fmt.Sprint(row.waiting)
	if len(l.Waiting) > 1 || len(l.Waiting) == 1 && l.Waiting[0].Priority != workqueue.Normal {
		row.Levels = strings.Join(levels, ", ")
	}
	if !oldest.IsZero() {
		row.Oldest = shortTime(o.AsOf.Sub(oldest))
		if o.AsOf.Sub(oldest) > longWait {
			row.trouble = waitsLong
		}
	}
	if p50, known := quantile(&r.took, 0.5); known {
		p99, _ := quantile(&r.took, 0.99)
		row.P50, row.P99 = shortTime(p50), shortTime(p99)
	}
	row.Cache, row.Heard = cacheState(o.AsOf, l)
	return row
}

// priorityName returns the word for a priority.
func priorityName(p workqueue.Priority) string {
	switch p {
	case workqueue.Low:
		return "low"
	case workqueue.Normal:
		return "normal"
	case workqueue.High:
		return "high"
	}
	return fmt.Sprintf("priority %d:", p)
}

// cacheState says how current the informers of a loop are.
func cacheState(now time.Time, l *manager.LoopView) (state, heard string) {
	var oldest time.Time
	for _, i := range l.Informers {
		switch {
		case i.Trouble != "":
			return "behind", plain(i.Kind + ": " + i.Trouble)
		case !i.Synced:
			return "not listed", plain(i.Kind + ": no first state yet")
		case !i.Heard.IsZero() && (oldest.IsZero() || i.Heard.Before(oldest)):
			oldest = i.Heard
		}
	}
	switch {
	case len(l.Informers) == 0:
		return "–", "the loop reads no informer"
	case oldest.IsZero():
		return "current", ""
	}
	return "current", "the server last sent something " + shortTime(now.Sub(oldest)) + " ago; without changes it does so about once a minute"
}

// troubles says what is wrong with a loop, the worst first, and notes in its row how bad it is.
func troubles(o *manager.Overview, l *manager.LoopView, row *loopRow) (texts []string) {
	note := func(level int, text string) {
		row.trouble = max(row.trouble, level)
		texts = append(texts, plain(text))
	}
	for _, i := range l.Informers {
		switch {
		case i.Trouble != "":
			note(cacheNotCurrent, fmt.Sprintf("%s cannot be listed or watched: %s", i.Kind, i.Trouble))
		case !i.Synced && o.State == "working":
			note(cacheNotCurrent, i.Kind+" are not listed yet")
		}
	}
	if n := l.Failing; n > 0 {
		note(runsFail, verbed(n, "fails", "fail")+": "+commonError(l, false))
	}
	if n := l.GivenUp; n > 0 {
		note(runsFail, verbed(n, "is given up", "are given up")+": "+commonError(l, true))
	}
	if l.Panics > 0 {
		note(runsFail, "panics were contained: "+fmt.Sprint(l.Panics))
	}
	if row.trouble >= waitsLong && row.waiting > 0 {
		texts = append(texts, fmt.Sprintf("%s for a worker; the oldest waits %s", verbed(row.waiting, "waits", "wait"), row.Oldest))
	}
	return texts
}

// verbed is a number of keys with what they do.
func verbed(n int, one, several string) string {
	if n == 1 {
		return "1 key " + one
	}
	return fmt.Sprintf("%d keys %s", n, several)
}

// commonError returns the error that most of the failed keys have, and says how many other errors there are.
func commonError(l *manager.LoopView, givenUp bool) string {
	times := map[string]int{}
	text := ""
	for _, f := range l.Failed {
		if f.GivenUp != givenUp {
			continue
		}
		if times[f.Error]++; times[f.Error] > times[text] {
			text = f.Error
		}
	}
	if others := len(times) - 1; others > 0 {
		return fmt.Sprintf("%s (and %s)", text, counted(others, "other error"))
	}
	return cmp.Or(text, "the error is not kept")
}

// failedKeys returns the first keys that failed.
func failedKeys(now time.Time, l *manager.LoopView) (keys []keyLink) {
	for _, f := range l.Failed[:min(len(l.Failed), mostKeys)] {
		k := keyLink{Text: f.Key, Link: linkOfKey(l, f.Key), Note: fmt.Sprintf("failed %s", counted(f.Runs, "time"))}
		switch {
		case f.GivenUp:
			k.Note += ", runs again when something changes"
		case f.Next != nil:
			k.Note += ", next try in " + shortTime(f.Next.Sub(now))
		}
		keys = append(keys, k)
	}
	return keys
}

// linkOfKey returns the path of the object that a key of a loop stands for; "" if keys of the loop are no objects.
func linkOfKey(l *manager.LoopView, key string) string {
	if l.Kind == "" {
		return ""
	}
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		namespace, name = "", key
	}
	if checkPart(name) != nil {
		return ""
	}
	return address{group: l.Group, kind: l.Kind, key: object.Key{Namespace: namespace, Name: name}}.path()
}
