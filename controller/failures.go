// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"
)

// Failure describes a key whose last run failed.
type Failure struct {
	Error string
	At    time.Time
	Runs  int // failed runs in a row
	// GivenUp is set if the key does not run again until something changes.
	GivenUp bool
}

// maxFailures bounds the keys whose failures are kept: the cluster decides how many fail.
const maxFailures = 1000

// failures has the last error of keys, for the debug pages.
type failures[K comparable] struct {
	mu   sync.Mutex
	last map[K]Failure
	// row counts the failures of a key in a row, since it was given up. The number of the rate
	// limiter differs: it also counts runs that ask for Result.Again. Like the limiter, row
	// has an entry for each key that fails.
	row    map[K]int
	total  uint64
	gaveUp uint64
}

// note counts a run, and returns how many runs of the key have failed in a row.
func (f *failures[K]) note(key K, err error) (row int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.last, key)
		delete(f.row, key)
		return 0
	}
	if f.row == nil {
		f.row = map[K]int{}
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
		f.last = map[K]Failure{}
	}
	f.last[key] = Failure{Error: err.Error(), At: time.Now(), Runs: max(known.Runs+1, f.row[key])}
	return f.row[key]
}

func (f *failures[K]) givenUp(key K) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gaveUp++
	delete(f.row, key)
	if known, remembered := f.last[key]; remembered {
		known.GivenUp = true
		f.last[key] = known
	}
}
