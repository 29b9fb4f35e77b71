// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"
)

// zones have changes of clocks of every kind: an hour, half an hour, at midnight, and none.
var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Africa/Cairo", "Africa/Casablanca",
	"Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Kiritimati", "Pacific/Apia", "America/St_Johns", "America/Havana",
}

// bruteForce returns the slots of a schedule, minute by minute.
func bruteForce(c *calendar, after, until time.Time) []time.Time {
	var all []time.Time
	for t := after.Truncate(time.Minute); !t.After(until); t = t.Add(time.Minute) {
		local := t.In(c.location)
		year, month, of := local.Date()
		if t.After(after) && local.Second() == 0 && c.matches(day{year, month, of}) &&
			1<<local.Hour()&c.hours != 0 && 1<<local.Minute()&c.minutes != 0 {
			all = append(all, t)
		}
	}
	return all
}

func field(t *rapid.T, name string, low, high int) string {
	switch rapid.IntRange(0, 3).Draw(t, name+" form") {
	case 0:
		return "*"
	case 1:
		return fmt.Sprintf("*/%d", rapid.IntRange(1, high).Draw(t, name+" step"))
	default:
		parts := rapid.SliceOfN(rapid.IntRange(low, high), 1, 4).Draw(t, name)
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(parts), " ", ","), "[]")
	}
}

func TestSlotsAreThoseOfASearchMinuteByMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		schedule := strings.Join([]string{
			field(t, "minute", 0, 59), field(t, "hour", 0, 23), field(t, "day", 1, 31), field(t, "month", 1, 12), field(t, "weekday", 0, 6),
		}, " ")
		s, err := parse(schedule, zone)
		if err != nil {
			t.Skip(err)
		}
		c := s.(*calendar)
		// Seven weeks, so that many of them have a change of clocks.
		after := time.Unix(rapid.Int64Range(1325376000, 1893456000).Draw(t, "after"), 0)
		until := after.Add(time.Duration(rapid.IntRange(0, 7*7*24*60).Draw(t, "minutes")) * time.Minute)
		want := bruteForce(c, after, until)
		if n := c.count(after, until); n != len(want) {
			t.Errorf("%q in %s has %d slots after %s until %s, want %d", schedule, zone, n, after, until, len(want))
		}
		latest, first := time.Time{}, c.next(after)
		if len(want) > 0 {
			latest = want[len(want)-1]
			if !first.Equal(want[0]) {
				t.Errorf("%q in %s: the slot after %s is %s, want %s", schedule, zone, after, first, want[0])
			}
		} else if !first.After(until) {
			t.Errorf("%q in %s: the slot after %s is %s, and until %s there is none", schedule, zone, after, first, until)
		}
		if got := c.latest(after, until); !got.Equal(latest) {
			t.Errorf("%q in %s: the last slot after %s until %s is %s, want %s", schedule, zone, after, until, got, latest)
		}
	})
}

// TestSlotsAreThoseOfTheLibrary compares the search forward with the library's, which
// kube-controller-manager uses, in zones where the days have a midnight.
func TestSlotsAreThoseOfTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"}).Draw(t, "zone")
		schedule := strings.Join([]string{
			field(t, "minute", 0, 59), field(t, "hour", 0, 23), field(t, "day", 1, 31), field(t, "month", 1, 12), field(t, "weekday", 0, 6),
		}, " ")
		s, err := parse(schedule, zone)
		if err != nil {
			t.Skip(err)
		}
		theirs, err := cron.ParseStandard("TZ=" + zone + " " + schedule)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(rapid.Int64Range(1325376000, 1893456000).Draw(t, "at"), 0)
		for range 20 {
			ours, want := s.next(at), theirs.Next(at)
			if want.IsZero() {
				return // the library gives up after five years
			}
			if !ours.Equal(want) {
				t.Fatalf("%q in %s: the slot after %s is %s, and for the library %s", schedule, zone, at, ours, want)
			}
			at = want
		}
	})
}

func TestADayWithoutAMidnightHasItsSlots(t *testing.T) {
	// In Chile the clocks went from 23:59:59 on 7 September 2024 to 01:00:00 on the 8th, a Sunday.
	s, err := parse("30 12 * * 0", "America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	santiago, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	want := time.Date(2024, 9, 8, 12, 30, 0, 0, santiago)
	if got := s.next(want.AddDate(0, 0, -3)); !got.Equal(want) {
		t.Errorf("the slot is %s, want %s", got, want)
	}
}

func TestAScheduleWithAFixedDistanceCountsFromItsStart(t *testing.T) {
	s, err := parse("@every 90m", "")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	years := start.AddDate(20, 0, 0)
	if got, want := s.next(start), start.Add(90*time.Minute); !got.Equal(want) {
		t.Errorf("the first slot is %s, want %s", got, want)
	}
	if got := s.latest(start, start.Add(89*time.Minute)); !got.IsZero() {
		t.Errorf("there is a slot %s before the first", got)
	}
	want := start.Add(years.Sub(start).Truncate(90 * time.Minute))
	if got := s.latest(start, years); !got.Equal(want) {
		t.Errorf("the last slot in twenty years is %s, want %s", got, want)
	}
	if got, want := s.count(start, years), int(years.Sub(start)/(90*time.Minute)); got != want {
		t.Errorf("twenty years have %d slots, want %d", got, want)
	}
}

func TestSchedulesThatCannotBeParsedAreErrors(t *testing.T) {
	for _, schedule := range []string{"", "TZ=0", "TZ=", "CRON_TZ=UTC", "TZ=Mars/Olympus * * * * *", "* * * *", "61 * * * *", "@every", "@every -", "0 0 31 2 *", "0 0 30,31 2 *"} {
		if s, err := parse(schedule, "UTC"); err == nil {
			t.Errorf("%q is the schedule %v, want an error", schedule, s)
		}
	}
	if _, err := parse("* * * * *", "Mars/Olympus"); err == nil {
		t.Error("a time zone that does not exist is no error")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("*/5 * * * 1-5", "Europe/Berlin")
	f.Add("TZ=0", "")
	f.Add("@every 1s", "")
	f.Add("@monthly", "Pacific/Apia")
	f.Fuzz(func(t *testing.T, schedule, zone string) {
		s, err := parse(schedule, zone)
		if err != nil {
			return
		}
		after := time.Unix(rand.New(rand.NewPCG(1, uint64(len(schedule)))).Int64N(1<<31), 0)
		until := after.AddDate(0, 0, 3)
		latest := s.latest(after, until)
		if n := s.count(after, until); (n == 0) != latest.IsZero() {
			t.Errorf("%q in %q has %d slots and the latest is %s", schedule, zone, n, latest)
		}
		if next := s.next(after); !next.After(after) {
			t.Errorf("%q in %q: the slot after %s is %s", schedule, zone, after, next)
		}
	})
}

func BenchmarkTwentyYearsOfMissedSlots(b *testing.B) {
	s, err := parse("*/10 8-18 * * 1-5", "Europe/Berlin")
	if err != nil {
		b.Fatal(err)
	}
	until := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	after := until.AddDate(-20, 0, 0)
	for b.Loop() {
		s.latest(after, until)
		s.count(after, until)
		s.next(until)
	}
}
