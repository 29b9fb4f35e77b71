// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

const (
	soakAdders = 32
	soakShared = 5_000  // keys that are added again and again; of the others each is added once
	soakAhead  = 20_000 // keys that may be ready: how memory grows is not what is asked
)

// soakedQueue is what a soak needs of a queue; a test has some that do wrong.
type soakedQueue interface {
	AddWith(how workqueue.Add, keys ...int)
	Forget(key int)
	Get() (workqueue.Item[int], bool)
	Done(key int)
	Items() iter.Seq[workqueue.Item[int]]
	Stats() workqueue.Stats
	ShutDown()
}

// soakQueue adds keys in every manner there is, from many goroutines at a time, while
// others work them off, and prints what became of the adds. It is an error if one was
// lost or doubled, or if a key had two workers.
func soakQueue(ctx context.Context, adds int, out io.Writer) error {
	printMachine(out)
	fmt.Fprintf(out, "# soak: %d goroutines add, %d work off\n", soakAdders, consumers)
	return soak(ctx, newSoakedQueue(), adds, out)
}

// newSoakedQueue returns a queue with all that can be switched on, and delays that end soon.
func newSoakedQueue() *workqueue.Queue[int] {
	return workqueue.New(workqueue.Options[int]{
		Name:    "soak",
		Limiter: &workqueue.Exponential[int]{Base: time.Microsecond, Max: time.Millisecond},
		Fair:    func(key int) string { return strconv.Itoa(key % 7) },
		AgeStep: time.Microsecond,
	})
}

func soak(ctx context.Context, q soakedQueue, adds int, out io.Writer) error {
	l := &soakLedger{shared: make([]soakedKey, soakShared), own: make([]atomic.Int32, adds)}
	began := time.Now()
	var working, adding sync.WaitGroup
	for w := range consumers {
		working.Go(func() { soakWorker(q, l, w%2 == 0) })
	}
	for a := range soakAdders {
		share := adds / soakAdders
		if a < adds%soakAdders {
			share++
		}
		adding.Go(func() { soakAdder(ctx, q, l, rand.New(rand.NewPCG(1, uint64(a))), share) })
	}
	adding.Wait()
	if err := l.rest(ctx, q); err != nil {
		q.ShutDown()
		return err
	}
	q.ShutDown()
	working.Wait()
	return l.print(out, time.Since(began))
}

// soakWorker works as both kinds of workers do: through Items, or Get and Done.
func soakWorker(q soakedQueue, l *soakLedger, items bool) {
	work := func(item workqueue.Item[int]) {
		l.begin(item)
		if item.Attempt > 0 {
			q.Forget(item.Key)
		}
		runtime.Gosched() // who should not get the key meanwhile has the opportunity
		l.end(item.Key)
	}
	if items {
		for item := range q.Items() {
			work(item)
		}
		return
	}
	for {
		item, ok := q.Get()
		if !ok {
			return
		}
		work(item)
		q.Done(item.Key)
	}
}

// soakAdder makes a number of adds, half of them of keys that are not added a second
// time.
func soakAdder(ctx context.Context, q soakedQueue, l *soakLedger, r *rand.Rand, adds int) {
	for adds > 0 && ctx.Err() == nil {
		how := workqueue.Add{Priority: workqueue.Priority(r.IntN(256) - 128)}
		keys := 1
		switch r.IntN(10) {
		case 0:
			how.After = time.Duration(r.IntN(1000)) * time.Microsecond
		case 1:
			how.RateLimited = true
		case 2:
			keys = min(3, adds)
		case 3, 4, 5:
			how.Cause = workqueue.Cause{Source: "pods", Verb: workqueue.Updated, Version: "1",
				Ref: object.Ref{Kind: "Pod", Key: object.Key{Name: strconv.Itoa(r.IntN(8))}}}
		}
		adds -= keys
		var all [3]int
		if r.IntN(2) == 0 {
			first := r.IntN(soakShared)
			for i := range keys {
				all[i] = (first + i%2) % soakShared // the last of three is the first again
			}
		} else {
			for i := range keys {
				all[i] = l.newKey()
			}
		}
		for _, key := range all[:keys] {
			l.add(key)
		}
		q.AddWith(how, all[:keys]...)
		for q.Stats().Ready > soakAhead && ctx.Err() == nil {
			runtime.Gosched()
		}
	}
}

// soakLedger counts the adds and the runs, independently of the queue.
type soakLedger struct {
	shared []soakedKey
	own    []atomic.Int32 // runs of each key that is added once
	keys   atomic.Int64   // of these, that have been added

	gets, together, empty atomic.Int64
}

// soakedKey is alone in its cache line.
type soakedKey struct {
	added  atomic.Int64 // adds that were begun
	stands atomic.Int64 // adds that the runs stood for
	seen   atomic.Int64 // of those that were begun, when the last run began
	busy   atomic.Bool
	_      [32]byte
}

// newKey returns a key that has not been added.
func (l *soakLedger) newKey() int { return soakShared - 1 + int(l.keys.Add(1)) }

// add notes an add that is about to be made.
func (l *soakLedger) add(key int) {
	if key < soakShared {
		l.shared[key].added.Add(1)
	}
}

func (l *soakLedger) begin(item workqueue.Item[int]) {
	l.gets.Add(1)
	if item.Adds < 1 {
		l.empty.Add(1)
	}
	if item.Key >= soakShared {
		l.own[item.Key-soakShared].Add(1)
		return
	}
	k := &l.shared[item.Key]
	if !k.busy.CompareAndSwap(false, true) {
		l.together.Add(1)
	}
	k.seen.Store(k.added.Load())
	k.stands.Add(int64(item.Adds))
}

func (l *soakLedger) end(key int) {
	if key < soakShared {
		l.shared[key].busy.Store(false)
	}
}

// soakPatience is how long nothing may happen while keys are left.
const soakPatience = 20 * time.Second

// rest waits until the queue is empty. It returns an error if it does not become so.
func (l *soakLedger) rest(ctx context.Context, q soakedQueue) error {
	gets, since := int64(-1), time.Now()
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("soaking the queue: %w", err) // not all adds have been made
		}
		s := q.Stats()
		if s.Ready+s.Delayed+s.Processing == 0 {
			return nil
		}
		if now := l.gets.Load(); now != gets {
			gets, since = now, time.Now()
		}
		if time.Since(since) > soakPatience {
			return fmt.Errorf("soaking the queue: nothing has been handed out for %s, with %d keys ready, %d delayed and %d processed",
				soakPatience, s.Ready, s.Delayed, s.Processing)
		}
		time.Sleep(time.Millisecond)
	}
}

// sum returns the number of adds and of keys, how many adds were followed by no run, and how
// many runs or parts of runs had no add.
func (l *soakLedger) sum() (adds, keys, lost, doubled int64) {
	for i := range l.shared {
		k := &l.shared[i]
		added, stands := k.added.Load(), k.stands.Load()
		adds += added
		if added > 0 {
			keys++
		}
		missing := max(added-stands, 0)
		if k.seen.Load() < added { // what came after the last run began
			missing = max(missing, 1)
		}
		lost += missing
		doubled += max(stands-added, 0)
	}
	own := l.keys.Load()
	for i := range l.own[:own] {
		switch runs := int64(l.own[i].Load()); runs {
		case 0:
			lost++
		default:
			doubled += runs - 1
		}
	}
	return adds + own, keys + own, lost, doubled + l.empty.Load()
}

func (l *soakLedger) print(out io.Writer, took time.Duration) error {
	adds, keys, lost, doubled := l.sum()
	together := l.together.Load()
	line := func(name, unit string, figure float64, a aim) {
		m := measure{name: "soak-" + name, unit: unit, aim: a, ours: []float64{figure}}
		m.print(out, false)
	}
	line("adds", "", float64(adds), aim{})
	line("keys", "", float64(keys), aim{})
	line("gets", "", float64(l.gets.Load()), aim{})
	line("lost", "", float64(lost), aim{none: true})
	line("doubled", "", float64(doubled), aim{none: true})
	line("at-the-same-time", "", float64(together), aim{none: true})
	line("seconds", "s", took.Seconds(), aim{})
	if lost+doubled+together > 0 {
		return fmt.Errorf("soaking the queue: of %d adds, %d were lost and %d doubled, and %d times a key had two workers",
			adds, lost, doubled, together)
	}
	return nil
}
