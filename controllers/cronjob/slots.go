// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the zones of schedules, for machines and images that have none

	"github.com/robfig/cron/v3"
)

// slots are the times at which a schedule starts a Job. They are whole seconds.
type slots interface {
	// next returns the first slot after a time, or the zero time if there is none.
	next(after time.Time) time.Time
	// latest returns the last slot that is after one time and not after another, or the
	// zero time if there is none.
	latest(after, until time.Time) time.Time
	// count returns how many slots are after one time and not after another.
	count(after, until time.Time) int
}

// errNever means that a schedule has no slot, such as the 31st of February.
var errNever = errors.New("the schedule names no day that exists")

// parse reads a schedule in a time zone. An empty zone is the zone of this process. The API
// server parses schedules with the same library.
//
// A schedule may begin with TZ=… or CRON_TZ=…, which old API servers let through. Such a zone
// is used, and the other one is ignored.
func parse(schedule, zone string) (slots, error) {
	if zone != "" && !namesZone(schedule) {
		schedule = "TZ=" + zone + " " + schedule
	}
	parsed, err := parseStandard(schedule)
	if err != nil {
		return nil, err
	}
	switch s := parsed.(type) {
	case *cron.SpecSchedule:
		c := &calendar{minutes: s.Minute, hours: s.Hour, days: s.Dom, months: s.Month, weekdays: s.Dow, location: s.Location}
		if c.next(time.Now()).IsZero() {
			return nil, errNever
		}
		return c, nil
	case cron.ConstantDelaySchedule:
		return every(s.Delay), nil
	default:
		return nil, fmt.Errorf("a schedule of an unknown form, %T", parsed)
	}
}

// namesZone reports whether a schedule names a time zone itself.
func namesZone(schedule string) bool { return strings.Contains(schedule, "TZ") }

// parseStandard parses a schedule. The library panics for some texts, such as "TZ=0".
func parseStandard(schedule string) (parsed cron.Schedule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("invalid schedule format: %v", p)
		}
	}()
	return cron.ParseStandard(schedule)
}

// every is a schedule with a fixed distance between two slots, such as "@every 90m". Its slots
// are counted from the time that a caller passes.
type every time.Duration

func (e every) next(after time.Time) time.Time {
	return after.Truncate(time.Second).Add(time.Duration(e))
}

func (e every) latest(after, until time.Time) time.Time {
	n := e.count(after, until)
	if n == 0 {
		return time.Time{}
	}
	return after.Truncate(time.Second).Add(time.Duration(n) * time.Duration(e))
}

func (e every) count(after, until time.Time) int {
	return max(0, int(until.Sub(after.Truncate(time.Second))/time.Duration(e)))
}

// calendar is a schedule of minutes, hours and days. Each field is a set of bits, as the library
// has it.
//
// A slot is a whole minute whose local time matches all fields. So a local time that a change of
// clocks skips has no slot, and one that it repeats has two. The library's own search agrees,
// except that it misses days without a midnight; and it only goes forward, one slot at a time.
// Here the search goes day by day in both directions, so that years of missed slots cost the
// same as one.
type calendar struct {
	minutes, hours, days, months, weekdays uint64
	location                               *time.Location
}

const (
	// star is the bit of a field that was written as "*".
	// Source: github.com/robfig/cron/v3, starBit.
	star = 1 << 63
	// horizon is how many days a search goes. The 29th of February is eight years after the one
	// before it if a year between them, such as 2100, is no leap year.
	horizon = 9 * 366
)

func (c *calendar) next(after time.Time) time.Time {
	d := c.dayOf(after)
	for range horizon {
		for t := range c.of(d, forward) {
			if t.After(after) {
				return t.In(c.location)
			}
		}
		d = d.add(1)
	}
	return time.Time{}
}

func (c *calendar) latest(after, until time.Time) time.Time {
	first := c.dayOf(after)
	for d := c.dayOf(until); !d.before(first); d = d.add(-1) {
		for t := range c.of(d, backward) {
			if !t.After(after) {
				return time.Time{}
			}
			if !t.After(until) {
				return t.In(c.location)
			}
		}
	}
	return time.Time{}
}

func (c *calendar) count(after, until time.Time) int {
	aDay := bits.OnesCount64(c.hours&^star) * bits.OnesCount64(c.minutes&^star)
	n := 0
	first, last := c.dayOf(after), c.dayOf(until)
	for d := first; !last.before(d); d = d.add(1) {
		if d != first && d != last && c.matches(d) && len(c.offsets(d)) == 1 {
			n += aDay
			continue
		}
		for t := range c.of(d, forward) {
			if t.After(after) && !t.After(until) {
				n++
			}
		}
	}
	return n
}

// matches reports whether a day has slots. If both the day of the month and the day of the week
// are restricted, one of them is enough, as in every cron.
func (c *calendar) matches(d day) bool {
	if 1<<uint(d.month)&c.months == 0 {
		return false
	}
	ofMonth := 1<<d.day&c.days != 0
	ofWeek := 1<<d.utc().Weekday()&c.weekdays != 0
	if c.days&star != 0 || c.weekdays&star != 0 {
		return ofMonth && ofWeek
	}
	return ofMonth || ofWeek
}

// direction is the order in which the slots of a day are visited.
type direction bool

const (
	forward  direction = false
	backward direction = true
)

// of visits the slots of a day, in UTC.
func (c *calendar) of(d day, order direction) iter.Seq[time.Time] {
	if !c.matches(d) {
		return func(func(time.Time) bool) {}
	}
	offsets := c.offsets(d)
	if len(offsets) > 1 {
		return slices.Values(c.ofChange(d, offsets, order))
	}
	return func(yield func(time.Time) bool) {
		for wall := range c.walls(d, order) {
			if !yield(wall.Add(-offsets[0])) {
				return
			}
		}
	}
}

// walls visits the local times of a day that match, written as times in UTC.
func (c *calendar) walls(d day, order direction) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		midnight := d.utc()
		for i := range 24 {
			hour := order.index(i, 24)
			if 1<<hour&c.hours == 0 {
				continue
			}
			for j := range 60 {
				minute := order.index(j, 60)
				if 1<<minute&c.minutes != 0 && !yield(midnight.Add(time.Duration(hour*60+minute)*time.Minute)) {
					return
				}
			}
		}
	}
}

// index returns the i-th of n numbers.
func (o direction) index(i, n int) int {
	if o == backward {
		return n - 1 - i
	}
	return i
}

// ofChange returns the slots of a day on which the clocks may change from one offset to another.
// A local time is a slot with each offset that holds at that moment: with none of the two, with
// one, or with both.
func (c *calendar) ofChange(d day, offsets []time.Duration, order direction) []time.Time {
	var all []time.Time
	for wall := range c.walls(d, forward) {
		for _, offset := range offsets {
			if t := wall.Add(-offset); c.offset(t) == offset {
				all = append(all, t)
			}
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	if order == backward {
		slices.Reverse(all)
	}
	return all
}

// offsets returns how far the local time of a day may be ahead of UTC: one offset, or two if the
// clocks change on the day or near it.
func (c *calendar) offsets(d day) []time.Duration {
	// Local time is at most 14 hours from UTC (Pacific/Kiritimati), and was 16 (Asia/Manila).
	before, after := c.offset(d.utc().Add(-16*time.Hour)), c.offset(d.utc().Add((24+16)*time.Hour))
	if before == after {
		return []time.Duration{before}
	}
	return []time.Duration{before, after}
}

// offset returns how far the local time is ahead of UTC at a moment.
func (c *calendar) offset(t time.Time) time.Duration {
	_, seconds := t.In(c.location).Zone()
	return time.Duration(seconds) * time.Second
}

func (c *calendar) dayOf(t time.Time) day {
	year, month, d := t.In(c.location).Date()
	return day{year, month, d}
}
