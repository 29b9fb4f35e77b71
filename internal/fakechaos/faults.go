// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"maps"
	"math/rand/v2"
	"sync"
)

// Fault is one way to misbehave.
type Fault string

// The faults, by when they happen.
const (
	Refused Fault = "connection refused" // as long as an outage lasts
	Cut     Fault = "connection cut"     // after a number of bytes, in whatever is being sent
	Slow    Fault = "late answer"

	// Instead of an answer.
	Overloaded    Fault = "429"
	Internal      Fault = "500"
	Unavailable   Fault = "503" // as a Status, or as text
	TooLarge      Fault = "too large resource version"
	Gone          Fault = "410" // to a watch or a page
	NoWatchList   Fault = "watch list refused"
	TruncatedList Fault = "list truncated" // the answer ends in order, in the middle of a list

	// In a watch.
	Truncated   Fault = "frame truncated" // the answer ends in order, in the middle of a frame
	Ended       Fault = "watch ended"     // between two frames
	ErrorGone   Fault = "ERROR event 410"
	ErrorEvent  Fault = "ERROR event 500"
	Pause       Fault = "late event"
	Replay      Fault = "events replayed" // a piece of history again, up to where the watch stands
	Repeat      Fault = "event repeated"  // one old event, out of its place
	Foreign     Fault = "foreign event"   // an object of another kind
	Garbled     Fault = "garbled event"   // a change whose object cannot be read; the next ones follow
	NoBookmark  Fault = "bookmark dropped"
	EarlyEnd    Fault = "watch list ended early"
	NoLastWords Fault = "watch list without bookmark" // the state, and then nothing but events

	// Of the server as a whole.
	Compacted Fault = "history compacted"
	Outage    Fault = "outage"
	Restored  Fault = "restored from a backup"
)

// Faults are all of them.
var Faults = []Fault{Refused, Cut, Slow, Overloaded, Internal, Unavailable, TooLarge, Gone, NoWatchList, TruncatedList,
	Truncated, Ended, ErrorGone, ErrorEvent, Pause, Replay, Repeat, Foreign, Garbled, NoBookmark, EarlyEnd, NoLastWords,
	Compacted, Outage, Restored}

// dice decides when a fault happens, and keeps count.
type dice struct {
	mu      sync.Mutex
	random  *rand.Rand
	quiet   bool
	without map[Fault]bool
	counts  map[Fault]int
}

func newDice(random *rand.Rand, without []Fault) *dice {
	d := &dice{random: random, quiet: true, without: map[Fault]bool{}, counts: map[Fault]int{}}
	for _, f := range without {
		d.without[f] = true
	}
	return d
}

// once reports, one time in n, that a fault is to happen. While the server is calm
// none is.
func (d *dice) once(f Fault, n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.quiet && !d.without[f] && d.random.IntN(n) == 0
}

// roll is once for a fault that happens right away.
func (d *dice) roll(f Fault, n int) bool {
	yes := d.once(f, n)
	if yes {
		d.count(f)
	}
	return yes
}

// number returns one from 0 up to n.
func (d *dice) number(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

func (d *dice) count(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[f]++
}

func (d *dice) calm() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.quiet
}

func (d *dice) rage(yes bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.quiet = !yes
}

func (d *dice) counted() map[Fault]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.counts)
}
