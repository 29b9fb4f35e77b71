// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// Delivery says how often and how long a Runner tries. A zero field is its default.
type Delivery struct {
	// Batch is how many events are given to the sink at once, at most. Default: 100 for
	// terminals, files, mail and webhooks in batch mode, 20 for those with a body, otherwise 1.
	Batch int `yaml:"batch,omitempty"`
	// Timeout is for one attempt. Default: 30s.
	Timeout time.Duration `yaml:"timeout,omitempty"`
	// MinWait is the wait after the first attempt that failed; it doubles with each one
	// that follows. Default: 1s.
	MinWait time.Duration `yaml:"minWait,omitempty"`
	// MaxWait is the longest wait. Default: 5m.
	MaxWait time.Duration `yaml:"maxWait,omitempty"`
	// MaxAge is how old an event gets: one that could not be sent for so long is dropped,
	// which is counted and said. Default: 24h.
	MaxAge time.Duration `yaml:"maxAge,omitempty"`
}

// maxBatch is the largest Delivery.Batch: what is in a batch is in memory at once.
const maxBatch = 10_000

func (d Delivery) check(report reporter) {
	if d.Batch > maxBatch {
		report.wrong("batch", "%d is more than %d", d.Batch, maxBatch)
	}
	notNegative(report, "batch", d.Batch)
	notNegative(report, "timeout", d.Timeout)
	notNegative(report, "minWait", d.MinWait)
	notNegative(report, "maxWait", d.MaxWait)
	notNegative(report, "maxAge", d.MaxAge)
	if with := d.withDefaults(1); d.MaxWait >= 0 && with.MaxWait < with.MinWait {
		report.wrong("maxWait", "%v is less than minWait, %v", with.MaxWait, with.MinWait)
	}
}

func (d Delivery) withDefaults(batch int) Delivery {
	return Delivery{
		Batch:   cmp.Or(d.Batch, batch),
		Timeout: cmp.Or(d.Timeout, 30*time.Second),
		MinWait: cmp.Or(d.MinWait, time.Second),
		MaxWait: cmp.Or(d.MaxWait, 5*time.Minute),
		MaxAge:  cmp.Or(d.MaxAge, 24*time.Hour),
	}
}

// backoff returns the wait after a number of failures in a row, 1 and more.
func (d Delivery) backoff(failures int) time.Duration {
	wait := d.MinWait
	for range failures - 1 {
		if wait >= d.MaxWait/2 {
			return d.MaxWait
		}
		wait *= 2
	}
	return min(wait, d.MaxWait)
}

// jitter returns a wait between half of d and d, so that sinks that failed together do not try
// again together.
func jitter(d time.Duration) time.Duration {
	if d < 2 {
		return d
	}
	return d/2 + rand.N(d/2+1)
}
