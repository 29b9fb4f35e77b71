// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"sync"
	"time"
)

// Limiter decides how long a rate limited add waits. It has the methods of
// client-go's TypedRateLimiter, so those can be used too. It must be safe for
// concurrent use.
type Limiter[K comparable] interface {
	// When counts a failure of key and returns how long its next try has to wait.
	When(key K) time.Duration
	// Forget ends the series of failures of key.
	Forget(key K)
	// NumRequeues returns the failures of key since the last Forget, if they are counted.
	NumRequeues(key K) int
}

// The limits of DefaultLimiter, which are those of client-go's
// DefaultTypedControllerRateLimiter: what the built-in controllers are tuned to.
const (
	DefaultBaseDelay = 5 * time.Millisecond
	DefaultMaxDelay  = 1000 * time.Second
	DefaultPerSecond = 10
	DefaultBurst     = 100
)

// DefaultLimiter returns an Exponential and a TokenBucket, joined, with the
// default limits.
func DefaultLimiter[K comparable]() Limiter[K] {
	return Joined[K]{&Exponential[K]{}, &TokenBucket[K]{}}
}

// Exponential doubles the delay of a key with each of its failures. The zero
// value is ready to use. It keeps a number for each failing key until Forget.
type Exponential[K comparable] struct {
	Base time.Duration // after the first failure; zero or less is DefaultBaseDelay
	Max  time.Duration // never more than this; zero or less is DefaultMaxDelay

	mu       sync.Mutex
	failures map[K]int
}

// When returns Base times two to the power of the failures before this one, or Max.
func (x *Exponential[K]) When(key K) time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failures == nil {
		x.failures = make(map[K]int)
	}
	n := x.failures[key]
	x.failures[key] = n + 1

	delay, limit := positive(x.Base, DefaultBaseDelay), positive(x.Max, DefaultMaxDelay)
	for ; n > 0 && delay < limit; n-- {
		if delay > limit/2 { // also keeps it from overflowing
			return limit
		}
		delay *= 2
	}
	return min(delay, limit)
}

// Forget lets the key start at Base again.
func (x *Exponential[K]) Forget(key K) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.failures, key)
}

// NumRequeues returns the failures of the key since the last Forget.
func (x *Exponential[K]) NumRequeues(key K) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failures[key]
}

// TokenBucket limits all keys together: Burst at once, and PerSecond in the long
// run. The zero value is ready to use, with a full bucket.
type TokenBucket[K comparable] struct {
	PerSecond float64 // zero or less is DefaultPerSecond
	Burst     int     // zero or less is DefaultBurst

	mu    sync.Mutex
	start time.Time
	full  int64 // nanoseconds since start: when the bucket is full again
}

// maxBucket keeps the arithmetic of a bucket within 64 bits: 36 years.
const maxBucket = 1 << 60

// When takes a token and returns how long to wait until it is there. It is the
// virtual scheduling form of the generic cell rate algorithm (ITU-T I.371): one
// time stands for the whole state of the bucket.
func (b *TokenBucket[K]) When(K) time.Duration {
	every := int64(min(float64(time.Second)/positive(b.PerSecond, DefaultPerSecond), maxBucket))
	whole := every * min(int64(positive(b.Burst, DefaultBurst)), maxBucket/max(every, 1))

	b.mu.Lock()
	defer b.mu.Unlock()
	if b.start.IsZero() {
		b.start = time.Now()
	}
	now := int64(time.Since(b.start))
	b.full = min(max(b.full, now), maxBucket) + every
	return time.Duration(max(b.full-now-whole, 0))
}

// Forget does nothing: a token is not given back.
func (*TokenBucket[K]) Forget(K) {}

// NumRequeues returns 0: a bucket does not know keys.
func (*TokenBucket[K]) NumRequeues(K) int { return 0 }

// Joined waits for the slowest of several limiters.
type Joined[K comparable] []Limiter[K]

// When asks all limiters and returns the longest delay.
func (j Joined[K]) When(key K) (delay time.Duration) {
	for _, l := range j {
		delay = max(delay, l.When(key))
	}
	return delay
}

// Forget tells all limiters.
func (j Joined[K]) Forget(key K) {
	for _, l := range j {
		l.Forget(key)
	}
}

// NumRequeues returns the highest count of the limiters.
func (j Joined[K]) NumRequeues(key K) (n int) {
	for _, l := range j {
		n = max(n, l.NumRequeues(key))
	}
	return n
}

func positive[N int | float64 | time.Duration](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}
