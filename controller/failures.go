// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// Failure is what is known of a key whose last run failed.
type Failure struct {
	Error string
	At    time.Time
	Runs  int // that failed in a row
	// GivenUp: the key is left alone until something changes.
	GivenUp bool
}

// maxFailures bounds the keys whose failures are remembered. Their number is a matter of
// the cluster, not of the controller.
const maxFailures = 1000

// failures remembers the last error of keys, for people.
type failures struct {
	mu   sync.Mutex
	last map[object.Key]Failure
	// row counts the failures of a key in a row, since it was given up. The rate limiter's
	// number is another one: it grows with runs that ask to come again, too. Like the limiter
	// it has an entry for each key that fails.
	row    map[object.Key]int
	total  uint64
	gaveUp uint64
}

// note counts a run, and returns how many runs of the key have failed in a row.
func (f *failures) note(key object.Key, err error) (row int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.last, key)
		delete(f.row, key)
		return 0
	}
	if f.row == nil {
		f.row = map[object.Key]int{}
	}
	f.row[key]++
	f.total++
	known, remembered := f.last[key]
	if !remembered && len(f.last) >= maxFailures {
		for some := range f.last { // what failed last says most
			delete(f.last, some)
			break
		}
	}
	if f.last == nil {
		f.last = map[object.Key]Failure{}
	}
	f.last[key] = Failure{Error: err.Error(), At: time.Now(), Runs: max(known.Runs+1, f.row[key])}
	return f.row[key]
}

func (f *failures) givenUp(key object.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gaveUp++
	delete(f.row, key)
	if known, remembered := f.last[key]; remembered {
		known.GivenUp = true
		f.last[key] = known
	}
}

// Failures returns the keys whose last run failed, those that were given up among them,
// and how many runs have failed in all. Of more than a thousand such keys some are left
// out, but not the one that failed last. It is safe for concurrent use.
func (c *Controller) Failures() (last map[object.Key]Failure, total uint64) {
	c.failures.mu.Lock()
	defer c.failures.mu.Unlock()
	return maps.Clone(c.failures.last), c.failures.total
}

// GivenUp returns how many times keys have been given up in all: after too many failures,
// or for a [Terminal] error. Which, and why, is in Failures until something changes. It is
// safe for concurrent use.
func (c *Controller) GivenUp() uint64 {
	c.failures.mu.Lock()
	defer c.failures.mu.Unlock()
	return c.failures.gaveUp
}

// Informers returns those that the Reconciler reads, as far as the controller knows.
func (c *Controller) Informers() []cache.Handle { return slices.Clone(c.informers) }
