// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// queueBench is the command line of "queue".
type queueBench struct {
	keys    int
	ops     int
	turns   int
	soak    int
	verbose bool
}

// What is done with a queue.
const (
	oneGoroutine   = "one-goroutine"   // gets a key, adds another and is done with the first
	eightConsumers = "eight-consumers" // get and are done; one more goroutine adds
	rateLimited    = "rate-limited"    // adds alone, of keys that have failed
)

// consumers are the goroutines that work off a queue, and maxBacklog is by how
// many keys the producers may be ahead of them: queues that are filled faster than they
// are emptied measure how memory grows.
const (
	consumers  = 8
	maxBacklog = 1000
)

// peerShare is which part of the operations a queue is measured with that is
// slower by so much that the turns would take minutes.
const peerShare = 10

// allowance is how many allocations an operation may have and still count as
// none: the runtime's own, of goroutines that sleep and of a slice that is made once.
const allowance = 0.005

func runQueue(ctx context.Context, args []string, out io.Writer) error {
	var b queueBench
	flags := flag.NewFlagSet("queue", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.IntVar(&b.keys, "keys", 10_000, "different keys")
	flags.IntVar(&b.ops, "ops", 20_000, "operations in a turn")
	flags.IntVar(&b.turns, "turns", 61, "turns of each queue")
	flags.IntVar(&b.soak, "soak", 0, "measure nothing: make this many adds from 32 goroutines, and fail if one is lost or doubled")
	flags.BoolVar(&b.verbose, "v", false, "print the figures of every turn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.soak < 0 {
		return fmt.Errorf("soaking the queue: --soak %d: want a number of adds", b.soak)
	}
	if b.soak > 0 {
		return soakQueue(ctx, b.soak, out)
	}
	if b.keys < 1 || b.ops < peerShare || b.turns < 1 {
		return fmt.Errorf("measuring queues: --keys %d, --ops %d, --turns %d: want at least 1, %d and 1",
			b.keys, b.ops, b.turns, peerShare)
	}
	printMachine(out)
	fmt.Fprintf(out, "# controller-runtime %s; %d keys, %d operations in each of %d turns, medians\n",
		moduleVersion("sigs.k8s.io/controller-runtime"), b.keys, b.ops, b.turns)
	objects, texts := make([]object.Key, b.keys), make([]string, b.keys)
	for i := range objects {
		objects[i] = object.Key{Namespace: fmt.Sprint("team-", i%50), Name: fmt.Sprint("web-", i)}
		texts[i] = objects[i].String()
	}
	if err := measureQueues(ctx, &b, out, "object-key", objects); err != nil {
		return err
	}
	return measureQueues(ctx, &b, out, "string", texts)
}

// cost is what an operation took.
type cost struct{ ns, allocations float64 }

// measureQueues measures all queues with keys of one type, which both sides of a
// ratio have, and prints what was found.
func measureQueues[K comparable](ctx context.Context, b *queueBench, out io.Writer, keyName string, keys []K) error {
	found := map[string][]cost{} // by work and side
	sides := []string{setpointSide, itemsSide, clientGoSide, controllerRuntimeSide}
	for range b.turns {
		for _, work := range []string{oneGoroutine, eightConsumers, rateLimited} {
			for _, side := range sides {
				if err := ctx.Err(); err != nil {
					return err
				}
				if side == itemsSide && work == rateLimited {
					continue
				}
				ops := b.ops
				if side == controllerRuntimeSide {
					ops /= peerShare
				}
				name := work + " " + side
				found[name] = append(found[name], measureQueue(side, work, keys, ops))
			}
		}
		slices.Reverse(sides) // neither is always first
	}
	column := func(work, side string, pick func(cost) float64) (column []float64) {
		for _, c := range found[work+" "+side] {
			column = append(column, pick(c))
		}
		return column
	}
	ours := setpointSide
	line := func(work, suffix, unit, peer string, a aim, pick func(cost) float64) {
		m := measure{name: keyName + "-" + work + suffix, unit: unit, aim: a,
			ours: column(work, ours, pick), theirs: column(work, peer, pick)}
		m.print(out, b.verbose)
	}
	ns := func(c cost) float64 { return c.ns }
	allocations := func(c cost) float64 { return c.allocations }
	for _, work := range []string{oneGoroutine, eightConsumers, rateLimited} {
		line(work, "", "ns", clientGoSide, aim{most: 1}, ns)
		least := aim{most: 1. / 8}
		if work == rateLimited {
			least = aim{} // it only writes down what to do later
		}
		line(work, "-vs-priority-queue", "ns", controllerRuntimeSide, least, ns)
		line(work, "-allocations", "", clientGoSide, aim{value: allowance}, allocations)
		line(work, "-allocations-vs-priority-queue", "", controllerRuntimeSide, aim{}, allocations)
	}
	ours = itemsSide
	for _, work := range []string{oneGoroutine, eightConsumers} {
		line(work, "-items", "ns", clientGoSide, aim{most: 1}, ns)
		line(work, "-items-vs-priority-queue", "ns", controllerRuntimeSide, aim{most: 1. / 8}, ns)
	}
	return nil
}

// measureQueue measures a new queue of a side, once it has done all it can for the
// first time.
func measureQueue[K comparable](side, work string, keys []K, ops int) cost {
	q := newMeasuredQueue[K](side, work == rateLimited)
	defer q.shutDown()
	do := map[string]func(measuredQueue[K], []K, int){
		oneGoroutine: addGetDone[K], eightConsumers: addAndConsume[K], rateLimited: addLimited[K],
	}[work]
	do(q, keys, min(ops, 2*len(keys)))
	runtime.GC() // what others left behind is not cleared up meanwhile
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	do(q, keys, ops)
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return cost{float64(took.Nanoseconds()) / float64(ops), float64(after.Mallocs-before.Mallocs) / float64(ops)}
}

func addGetDone[K comparable](q measuredQueue[K], keys []K, ops int) {
	i := 0
	q.add(i, keys[i])
	q.work(func(K) bool {
		if i++; i < ops {
			q.add(i, keys[i%len(keys)])
		}
		return i < ops
	})
}

func addLimited[K comparable](q measuredQueue[K], keys []K, ops int) {
	for i := range ops {
		q.addRateLimited(keys[i%len(keys)])
	}
	q.settle()
}

// counter is alone in its cache line.
type counter struct {
	n atomic.Int64
	_ [56]byte
}

// addAndConsume adds keys from one goroutine while eight others work them off. How
// far they are is counted outside of the queues, so that asking costs the same for
// all.
func addAndConsume[K comparable](q measuredQueue[K], keys []K, ops int) {
	var finished [consumers]counter
	sum := func() (n int) {
		for i := range finished {
			n += int(finished[i].n.Load())
		}
		return n
	}
	// Each consumer ends with a share of its own, so that the queue can be used
	// again: a consumer that is done early leaves the rest to the others.
	var left atomic.Int64
	left.Store(int64(ops))
	var working sync.WaitGroup
	for i := range consumers {
		working.Go(func() {
			if left.Add(-1) < 0 {
				return
			}
			q.work(func(K) bool {
				finished[i].n.Add(1)
				return left.Add(-1) >= 0
			})
		})
	}
	for i := range ops {
		ahead := maxBacklog
		if i%len(keys) == 0 {
			// What is of low priority can have been passed over ever since the
			// first key: nothing may be added a second time while it waits.
			ahead = 0
		}
		if i%64 == 0 || ahead == 0 {
			for i-sum() > ahead {
				runtime.Gosched()
			}
		}
		q.add(i, keys[i%len(keys)])
	}
	working.Wait()
}
