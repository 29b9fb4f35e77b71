// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// A command that runs for long decides how much garbage may pile up, unless the variable GOGC says it.
//
// Go collects when the heap has doubled. The heap of a manager of a small cluster is some 10 MB, and
// a Pod of a Job needs 70 KB of short-lived memory from its creation to its end. In a profile of
// 10,000 such Pods collecting took 19 % of the CPU, as often as every 10 MB. So 16 MB lie between two
// collections at least. A larger heap doubles, as before. With 32 MB the process kept 5 MB more after a run
// of 2,500 Pods: what lives was spread over more pages. In a profile of "setpoint watch" with 10,000 Pods, 11 MB of heap,
// collecting took 28 % of the CPU: each change is 80 KB of trees that are compared.
//
// When a burst of work is over, a process keeps its garbage until it allocates again, or for two
// minutes. The command collects it within seconds, and returns the memory to the system.
//
// A process at rest allocates little, so it may collect often for what it allocates: 1,000 Nodes make 0.6 MB a second
// in a manager of 24 MB. With half of that as room it collects every 20 s, for 50 ms of CPU a minute, and has 12 MB less
// resident.

// headroom is how much the process may allocate between two collections, in bytes, and restHeadroom how much while it is at
// rest.
const (
	headroom     = 16 << 20
	restHeadroom = 4 << 20
)

// leastPercent is the default of GOGC, and restPercent the least of a process at rest.
const (
	leastPercent = 100
	restPercent  = 50
)

// percentOf returns the GOGC with which a heap of so many live bytes has its headroom.
func percentOf(live uint64, resting bool) int {
	const least = 1 << 20 // a smaller heap is one that has not been collected yet
	if resting {
		return max(restPercent, int(restHeadroom*100/max(live, least)))
	}
	return max(leastPercent, int(headroom*100/max(live, least)))
}

// Tune sets GOGC after each collection, and returns memory when the process comes to rest, until ctx
// ends. It restores GOGC then.
func Tune(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var p *percents
	restore := func() {}
	if os.Getenv("GOGC") == "" {
		p, restore = setPercents()
	}
	var all sync.WaitGroup
	all.Go(func() { returnMemory(ctx, p) })
	return func() {
		cancel()
		all.Wait()
		restore()
	}
}

// percents sets GOGC after each collection. A nil percents sets nothing.
type percents struct {
	mu      sync.Mutex
	ended   bool
	now     int
	resting bool
	last    time.Time // the last collection
}

// sentinel is garbage that the next collection finds. It has a pointer, so that it shares its memory
// with no other object.
type sentinel struct{ _ *sentinel }

func setPercents() (p *percents, restore func()) {
	p = &percents{}
	before := debug.SetGCPercent(leastPercent)
	p.now = leastPercent
	p.collected()
	return p, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended = true
		debug.SetGCPercent(before)
	}
}

// busyWithin is the time between two collections by which a burst shows, before the next look at what was allocated.
const busyWithin = time.Second

// collected sets GOGC for the heap as it is, and again after the next collection.
func (p *percents) collected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.resting = p.resting && now.Sub(p.last) > busyWithin
	p.last = now
	if !p.ended {
		p.set()
		runtime.AddCleanup(new(sentinel), func(p *percents) { p.collected() }, p)
	}
}

// rest notes whether the process is at rest.
func (p *percents) rest(resting bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resting != resting && !p.ended {
		p.resting = resting
		p.set()
	}
}

// set is called with mu held.
func (p *percents) set() {
	// Each setting stops the process for a moment, so one that is near stays.
	if want := percentOf(readHeap().live, p.resting); want < p.now || want > p.now+p.now/8 {
		debug.SetGCPercent(want)
		p.now = want
	}
}

// heapState is what the runtime says about the heap, in bytes.
type heapState struct {
	live      uint64 // that the last collection left
	objects   uint64 // live ones, and garbage
	free      uint64 // that is not returned to the system
	allocated uint64 // since the process began
}

func readHeap() heapState {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	return heapState{samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64(), samples[3].Value.Uint64()}
}

// When a process is at rest, and when memory is returned.
const (
	restEvery  = time.Second
	restCalm   = 2                // times in a row that the process has hardly allocated
	restRate   = 512 << 10        // bytes: what a small manager at rest does not allocate within restEvery
	restShare  = 32               // a larger one allocates less than this share of what lives
	restLeast  = 8 << 20          // bytes that are worth a collection
	restPauses = 10 * time.Second // between two collections of this kind
	// restSoon is that pause where there is much to return, more than restMuch times what lives: the first state of a large cluster leaves that much,
	// some seconds after a process has come to rest for the first time. A manager that stood by beside 50,000 Pods had 260 MB resident without it, and 106 MB with it.
	restSoon = 3 * time.Second
	restMuch = 2
)

// idleness finds the moment at which a process comes to rest, and those at which memory is returned. It reads no clock. A process that allocates
// little of what can be returned need not be at rest for that: one that has just started beside 50,000 Pods has several times as much to return as it needs.
type idleness struct {
	allocated uint64
	calm      int           // times in a row that the process has hardly allocated
	slow      int           // times in a row that it has allocated little of what can be returned
	since     time.Duration // since memory was returned
}

// come takes the state of the heap, which it wants every restEvery. It reports whether the process is at rest, and whether
// to return memory.
func (r *idleness) come(h heapState) (resting, returns bool) {
	r.since += restEvery
	spare := h.free + h.objects - min(h.live, h.objects)
	allocates, little := h.allocated-r.allocated, max(restRate, h.live/restShare)
	r.calm = inARow(r.calm, allocates < little)
	r.slow = inARow(r.slow, allocates < max(little, spare/restShare))
	r.allocated = h.allocated
	resting = r.calm >= restCalm
	pause := restPauses
	if spare > restMuch*h.live {
		pause = restSoon
	}
	if r.slow < restCalm || r.since < pause || spare < max(restLeast, h.live/2) {
		return resting, false
	}
	r.since = 0
	return resting, true
}

// inARow counts how often in a row something was so.
func inARow(before int, is bool) int {
	if is {
		return before + 1
	}
	return 0
}

// returnMemory collects and returns memory whenever the process comes to rest.
func returnMemory(ctx context.Context, p *percents) {
	tick := time.NewTicker(restEvery)
	defer tick.Stop()
	r := idleness{since: restPauses}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		resting, returns := r.come(readHeap())
		p.rest(resting)
		if returns {
			debug.FreeOSMemory()
		}
	}
}
