// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// Candidate is a cache that a campaign tests.
type Candidate interface {
	// Version returns the version that the cache says it has.
	Version() string
	// Contents returns the objects of the cache.
	Contents() map[object.Key]Content
	// Observers returns the observers of the handlers that there are now.
	Observers() []*Observer
	// Disturb is called from time to time while the server rages. It adds and removes
	// handlers.
	Disturb(r *rand.Rand) error
	// Quiet is called with true when the faults stop, and with false when they begin again.
	// Handlers that never come to rest by themselves pause in between.
	Quiet(yes bool)
}

// Content is an object in a cache.
type Content struct {
	Seen
	Digest func() (uint64, error)
}

// Pace is how long a campaign is.
type Pace struct {
	Events int // changes in all
	Round  int // changes from one quiet point to the next; 0 is 1000
	Seed   uint64
}

// convergeWithin is how long a client has to reach the state of the server once the faults
// stop. A client that pauses for half a minute between tries, and waits the seconds of the Retry-After
// in the last faulty answer, needs less.
const convergeWithin = 5 * time.Minute

// Report is what a campaign found.
type Report struct {
	Events      int
	Faults      map[Fault]int
	Asked       Asked
	Told        int // events that handlers received
	Snapshots   int // that were checked
	QuietPoints int
	Equal       int             // quiet points at which the cache had the state of the server
	Stored      []time.Duration // from the end of the faults until the cache did
	Converge    []time.Duration // and until all its handlers had received it
	Lasted      time.Duration
	Breaches    map[Breach]int
	Texts       []string // the first breaches
}

// Run tests a candidate, which must be running, with a server. It needs a testing/synctest
// bubble: it waits for minutes, many times.
func Run(s *Server, j *Judge, c Candidate, pace Pace) (Report, error) {
	if pace.Round == 0 {
		pace.Round = 1000
	}
	random := rand.New(rand.NewPCG(pace.Seed, 3))
	var report Report
	began := time.Now()
	for report.Events < pace.Events {
		changes, err := s.round(min(pace.Round, pace.Events-report.Events), random, c)
		if err != nil {
			return report, err
		}
		report.Events += changes
		report.QuietPoints++
		if stored, told := s.converge(j, c); told > 0 {
			report.Equal++
			report.Stored, report.Converge = append(report.Stored, stored), append(report.Converge, told)
		}
		// In some of the pauses the backoff of a client is reset.
		time.Sleep(time.Duration(random.IntN(180)) * time.Second)
		s.mu.Lock()
		s.model.settle()
		s.mu.Unlock()
	}
	report.Lasted = time.Since(began)
	report.Faults = s.dice.counted()
	s.mu.Lock()
	report.Asked = s.asked
	s.mu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	report.Told, report.Snapshots, report.Breaches, report.Texts = j.told, j.snapshots, j.counts, j.texts
	return report, nil
}

// round makes a number of changes while the server rages, and ends with a calm server.
func (s *Server) round(changes int, random *rand.Rand, c Candidate) (made int, err error) {
	s.dice.rage(true)
	c.Quiet(false)
	var outage time.Time
	for made < changes {
		s.mu.Lock()
		before := s.model.changes
		for range 1 + random.IntN(30) {
			if err := s.model.step(); err != nil {
				s.mu.Unlock()
				return made, err
			}
		}
		made += s.model.changes - before
		if s.dice.roll(Compacted, 10) {
			s.model.compact()
		}
		if random.IntN(25) == 0 {
			s.model.backup()
		}
		if random.IntN(15) == 0 {
			s.noWatchList = !s.noWatchList
		}
		restored := s.dice.roll(Restored, 120)
		if restored {
			s.model.restore()
		}
		s.mu.Unlock()
		if restored || s.dice.roll(Outage, 50) {
			s.network.refuse(true)
			outage = time.Now().Add(time.Duration(random.IntN(40_000)) * time.Millisecond)
		}
		if err := c.Disturb(random); err != nil {
			return made, err
		}
		time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
		if time.Now().After(outage) {
			s.network.refuse(false)
		}
	}
	s.dice.rage(false)
	s.network.refuse(false)
	s.mu.Lock()
	s.noWatchList = false
	s.mu.Unlock()
	c.Quiet(true)
	return made, nil
}

// converge waits until the candidate has the state of the server, and judges it. It returns how
// long that took the cache and all its handlers, or 0 if they did not reach that state.
func (s *Server) converge(j *Judge, c Candidate) (stored, told time.Duration) {
	s.mu.Lock()
	version, truth, objects := text(s.model.version), seen(s.model.objects), s.model.objects
	s.mu.Unlock()
	equal := func() bool {
		have := c.Contents()
		if c.Version() != version || len(have) != len(truth) {
			return false
		}
		for key, o := range have {
			if truth[key] != o.Seen {
				return false
			}
		}
		return true
	}
	began := time.Now()
	rests := func() bool {
		if stored == 0 && equal() {
			stored = time.Since(began)
		}
		return stored > 0 && !slices.ContainsFunc(c.Observers(), func(o *Observer) bool { return !o.is(truth) })
	}
	// In a bubble, time passes only when all goroutines wait, so a look every tenth of a
	// second is enough. A signal of the candidate would have to be trusted.
	for {
		time.Sleep(100 * time.Millisecond)
		if rests() || time.Since(began) > convergeWithin {
			break
		}
	}
	told = time.Since(began)
	good := true
	have := map[object.Key]Seen{}
	for key, o := range c.Contents() {
		have[key] = o.Seen
		// An object that was never there may have neither UID nor version, as what is
		// missing from the truth has none: client-go keeps such a one of a garbled event.
		if is, there := truth[key]; !there || is != o.Seen {
			continue
		}
		digest, err := o.Digest()
		want, wantErr := Digest(objects[key].object)
		if err != nil || wantErr != nil || digest != want {
			good = false
			j.Breach(NotEqual, "%s at %v has another content (%v, %v)", key, o.Seen, err, wantErr)
		}
	}
	if v := c.Version(); v != version {
		good = false
		j.Breach(NotEqual, "the cache says that it has come to version %s, the server is at %s", v, version)
	}
	if d := difference(truth, have); len(have) != len(truth) || !strings.HasPrefix(d, "0 ") {
		good = false
		j.Breach(NotEqual, "%s", d)
	}
	for _, o := range c.Observers() {
		good = o.judgeAtRest(truth) && good
	}
	if !good {
		return 0, 0
	}
	return stored, told
}

// String is a report for people.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d events, %d delivered, in %s of the bubble's time\n", r.Events, r.Told, r.Lasted.Round(time.Second))
	fmt.Fprintf(&b, "%d quiet points, equal at %d", r.QuietPoints, r.Equal)
	if len(r.Converge) > 0 {
		fmt.Fprintf(&b, "; the cache after %s, all handlers after %s", spread(r.Stored), spread(r.Converge))
	}
	fmt.Fprintf(&b, "; %d snapshots checked\n", r.Snapshots)
	fmt.Fprintf(&b, "requests for %d lists, %d watch lists, %d watches\nfaults:", r.Asked.Lists, r.Asked.WatchLists, r.Asked.Watches)
	for _, f := range Faults {
		fmt.Fprintf(&b, " %s %d;", f, r.Faults[f])
	}
	b.WriteString("\nbreaches:")
	for _, breach := range Breaches {
		fmt.Fprintf(&b, " %s %d;", breach, r.Breaches[breach])
	}
	for _, t := range r.Texts {
		b.WriteString("\n  " + t)
	}
	return b.String()
}

func spread(all []time.Duration) string {
	sorted := slices.Sorted(slices.Values(all))
	return fmt.Sprintf("%s (at most %s)", sorted[len(sorted)/2].Round(100*time.Millisecond), sorted[len(sorted)-1].Round(100*time.Millisecond))
}
