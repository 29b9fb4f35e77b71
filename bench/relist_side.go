// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

// measureRelist measures the heap of an informer whose watch is refused because
// what it asks for has been forgotten, so that it must list again.
//
// Both figures are taken twice. The heap in use is what a process needs; it has
// the garbage of the time between two collections in it, and so has the steady
// state that it is held against, which is the highest while changes come. The live
// heap is what a collection leaves: it tells what is held twice from what is
// thrown away.
func measureRelist(ctx context.Context, s *sideSpec) (readings, error) {
	from, err := s.server()
	if err != nil {
		return nil, err
	}
	var h handler
	i, err := newInformer(s, from, &h)
	if err != nil {
		return nil, err
	}
	if err := i.sync(ctx); err != nil {
		return nil, err
	}
	defer i.stop()
	found := readings{}
	liveHeap() // the first list is over
	found["steady"], err = highest(heapInUse, time.Millisecond, func() error { return changes(ctx, s, from, &h) })
	if err != nil {
		return nil, err
	}
	found["peak"], err = highest(heapInUse, time.Millisecond, func() error {
		l, err := timed(func() error { return relist(ctx, s, from, i, &h) })
		found["wall"], found["cpu"] = l.wall, l.cpu
		return err
	})
	if err != nil {
		return nil, err
	}
	found["steady-live"] = liveHeap() / 1e6
	found["peak-live"], err = highest(collected, 0, func() error { return relist(ctx, s, from, i, &h) })
	return found, err
}

// relist has the server forget, and returns when the informer and its handler are
// up to date again.
func relist(ctx context.Context, s *sideSpec, from *server, i informer, h *handler) error {
	version, err := from.ask(ctx, "expire", s.Events)
	if err != nil {
		return err
	}
	err = until(ctx, "the informer to list again", func() (bool, error) {
		stored, err := i.stored()
		return stored >= version, err
	})
	if err != nil {
		return err
	}
	// Watches deliver later changes after this one.
	if version, err = from.ask(ctx, "publish", 1); err != nil {
		return err
	}
	return h.wait(ctx, version)
}

// collections are how many a steady state lasts: the heap is at its highest just
// before each.
const collections = 4

// changes lets changes come until there have been a few collections.
func changes(ctx context.Context, s *sideSpec, from *server, h *handler) error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	for until := m.NumGC + collections; m.NumGC < until; runtime.ReadMemStats(&m) {
		version, err := from.ask(ctx, "publish", max(100, s.Objects/4))
		if err != nil {
			return err
		}
		if err := h.wait(ctx, version); err != nil {
			return err
		}
	}
	return nil
}

// highest returns the highest of what a gauge showed while f ran.
func highest(gauge func() float64, every time.Duration, f func() error) (float64, error) {
	top := gauge()
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(every):
				top = max(top, gauge())
			}
		}
	})
	err := f()
	close(stop)
	watch.Wait()
	return top, err
}

// heapInUse is the memory of the heap that holds or held something, in MB.
func heapInUse() float64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(samples)
	return float64(samples[0].Value.Uint64()+samples[1].Value.Uint64()) / 1e6
}

// collected is what a collection leaves, in MB.
func collected() float64 {
	runtime.GC()
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return float64(samples[0].Value.Uint64()) / 1e6
}
