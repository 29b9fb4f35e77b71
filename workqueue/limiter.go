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

// The default limits, to which the built-in controllers are tuned.
// Source: k8s.io/client-go/util/workqueue, DefaultTypedControllerRateLimiter.
const (
	defaultBaseDelay = 5 * time.Millisecond
	defaultMaxDelay  = 1000 * time.Second
	defaultPerSecond = 10
	defaultBurst     = 100
)

// Exponential doubles the delay of a key with each of its failures. The zero
// value is ready to use. It has a number for each failing key until Forget.
type Exponential[K comparable] struct {
	Base time.Duration // after the first failure; zero or less is 5 ms
	Max  time.Duration // the longest delay; zero or less is 1,000 s

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

	delay, limit := positive(x.Base, defaultBaseDelay), positive(x.Max, defaultMaxDelay)
	for ; n > 0 && delay < limit; n-- {
		if delay > limit/2 { // also keeps it from overflowing
			return limit
		}
		delay *= 2
	}
	return min(delay, limit)
}

// Forget resets the delay of a key to Base.
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
	PerSecond float64 // zero or less is 10
	Burst     int     // zero or less is 100

	mu    sync.Mutex
	start time.Time
	full  int64 // nanoseconds since start: when the bucket is full again
}

// maxBucket keeps the arithmetic of a bucket within 64 bits: 36 years.
const maxBucket = 1 << 60

// When takes a token and returns how long to wait for it. It is the virtual scheduling form
// of the generic cell rate algorithm (ITU-T I.371), in which one time is the whole state of
// the bucket.
func (b *TokenBucket[K]) When(K) time.Duration {
	every := int64(min(float64(time.Second)/positive(b.PerSecond, defaultPerSecond), maxBucket))
	whole := every * min(int64(positive(b.Burst, defaultBurst)), maxBucket/max(every, 1))

	b.mu.Lock()
	defer b.mu.Unlock()
	if b.start.IsZero() {
		b.start = time.Now()
	}
	now := int64(time.Since(b.start))
	b.full = min(max(b.full, now), maxBucket) + every
	return time.Duration(max(b.full-now-whole, 0))
}

// Forget does nothing: a bucket does not take tokens back.
func (*TokenBucket[K]) Forget(K) {}

// NumRequeues returns 0: a bucket does not count by key.
func (*TokenBucket[K]) NumRequeues(K) int { return 0 }

// Backoff returns the limiter of most controllers of Kubernetes: the delay of a key doubles from
// base to most, and a [TokenBucket] limits all keys together. 0 is the default of [Exponential].
func Backoff[K comparable](base, most time.Duration) Limiter[K] {
	return Joined[K]{&Exponential[K]{Base: base, Max: most}, &TokenBucket[K]{}}
}

// Joined uses the longest delay of several limiters.
type Joined[K comparable] []Limiter[K]

// When calls all limiters and returns the longest delay.
func (j Joined[K]) When(key K) (delay time.Duration) {
	for _, l := range j {
		delay = max(delay, l.When(key))
	}
	return delay
}

// Forget calls Forget of all limiters.
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
