// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clientgo "k8s.io/client-go/tools/cache"
)

// written is a store that is written as fast as it can be.
type written interface {
	// run begins to write, or stops and returns when nothing waits to be written.
	run(ctx context.Context, on bool) error
	// writes is a number that grows by one with each write.
	writes() (uint64, error)
	// lag is how long it takes from one change at the server to the handler, in
	// milliseconds, when there is nothing else to write; 0 where there is no server.
	lag(ctx context.Context) (float64, error)
	// walk goes through everything without decoding it and returns how much it is.
	walk() int
}

// measureReaders measures how fast a store is written in different company.
func measureReaders(ctx context.Context, s *sideSpec) (_ readings, err error) {
	from, err := s.server()
	if err != nil {
		return nil, err
	}
	var store written
	if s.Side == indexerSide {
		if store, err = newIndexer(from.replay); err != nil {
			return nil, err
		}
	} else {
		h := handler{began: time.Now()}
		i, err := newInformer(s, from, &h)
		if err != nil {
			return nil, err
		}
		if err := i.sync(ctx); err != nil {
			return nil, err
		}
		defer i.stop()
		store = &fed{i, from.replay, &h}
	}
	if got := store.walk(); got != s.Objects {
		return nil, fmt.Errorf("the store has %d objects, want %d", got, s.Objects)
	}
	found := readings{}
	for _, c := range companies {
		liveHeap() // what one left is not cleaned up on the next one's time
		if err := c.measure(ctx, store, s.Span, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (c *company) measure(ctx context.Context, store written, span time.Duration, found readings) error {
	var stop atomic.Bool
	var lists, spun atomic.Uint64
	var all sync.WaitGroup
	for range c.count {
		all.Go(func() {
			for !stop.Load() {
				if c.spins {
					spun.Add(1)
				} else {
					store.walk()
					lists.Add(1)
				}
			}
		})
	}
	err := store.run(ctx, true)
	if err == nil {
		found["writes-"+c.name], found["lists-"+c.name], err = rates(ctx, store, &lists, span)
	}
	if err == nil {
		err = store.run(ctx, false)
	}
	if err == nil {
		found["lag-"+c.name], err = lags(ctx, store)
	}
	stop.Store(true)
	all.Wait()
	return err
}

// lags returns the mean of some lags.
func lags(ctx context.Context, store written) (mean float64, err error) {
	const rounds = 10
	for range rounds {
		lag, err := store.lag(ctx)
		if err != nil {
			return 0, err
		}
		mean += lag / rounds
	}
	return mean, nil
}

// rates returns how many writes and lists there are a second, once things have
// found their pace.
func rates(ctx context.Context, store written, lists *atomic.Uint64, span time.Duration) (writes, listed float64, err error) {
	pause := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	pause(span / 4)
	// Where the store has to be locked to know, that wait is before the clock is read.
	before, err := store.writes()
	if err != nil {
		return 0, 0, err
	}
	began, listsBefore := time.Now(), lists.Load()
	pause(span)
	after, err := store.writes()
	if err != nil {
		return 0, 0, err
	}
	seconds := time.Since(began).Seconds()
	return float64(after-before) / seconds, float64(lists.Load()-listsBefore) / seconds, ctx.Err()
}

// fed is an informer that is fed from memory.
type fed struct {
	informer
	replay  *replay
	handler *handler
}

func (f *fed) run(ctx context.Context, on bool) error {
	f.replay.run(on)
	if on {
		return nil
	}
	return until(ctx, "the informer to store what it was sent", func() (bool, error) {
		stored, err := f.stored()
		return stored >= f.replay.newest(), err
	})
}

func (f *fed) lag(ctx context.Context) (float64, error) {
	if err := f.handler.wait(ctx, f.replay.newest()); err != nil {
		return 0, err
	}
	began := time.Since(f.handler.began)
	if err := f.handler.wait(ctx, f.replay.publish(1)); err != nil {
		return 0, err
	}
	return float64(time.Duration(f.handler.at.Load())-began) / float64(time.Millisecond), nil
}

func (f *fed) writes() (uint64, error) { return f.stored() } // each change is one version

// indexer is the store of client-go's informers, with the index that they have,
// which one goroutine writes with objects that are decoded already.
type indexer struct {
	clientgo.Indexer
	replay *replay
	next   func(uint64) any
	count  atomic.Uint64
	stop   func()
}

func newIndexer(r *replay) (*indexer, error) {
	pods, err := decodeAll(r.tape, r.n)
	if err != nil {
		return nil, err
	}
	i := &indexer{
		Indexer: clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc, clientgo.Indexers{clientgo.NamespaceIndex: clientgo.MetaNamespaceIndexFunc}),
		replay:  r, next: func(n uint64) any { return pods[r.changed(n)] },
	}
	for _, p := range pods {
		if err := i.Add(p); err != nil {
			return nil, err
		}
	}
	return i, nil
}

func (i *indexer) run(_ context.Context, on bool) error {
	if !on {
		i.stop()
		return nil
	}
	var stop atomic.Bool
	var ended sync.WaitGroup
	i.stop = func() { stop.Store(true); ended.Wait() }
	ended.Go(func() {
		for !stop.Load() {
			if i.Update(i.next(i.count.Add(1))) != nil {
				panic("an object of which Add knew the key has none for Update")
			}
		}
	})
	return nil
}

func (i *indexer) writes() (uint64, error) { return i.count.Load(), nil }

func (i *indexer) lag(context.Context) (float64, error) { return 0, nil }

func (i *indexer) walk() int { return len(i.List()) }
