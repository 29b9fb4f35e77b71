// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"sync"
	"time"
)

// workerStays is how long a worker keeps its goroutine while it has nothing to do. A goroutine has a
// stack of 2 to 8 KB, and most of the informers of a process with hundreds of them, one for each
// namespace or each cluster, see no change for minutes. To start a goroutine costs 1 µs, so one
// that works all the time is not started each time.
const workerStays = 5 * time.Second

// worker calls a function when it has been notified, in a goroutine that is there while there is
// work. The function runs once at a time. Its methods are safe for concurrent use.
type worker struct {
	work  func(context.Context) // does all there is to do, or returns when its context ends
	ended func()                // called once, when work does not run and will not

	mu      sync.Mutex
	ctx     context.Context // nil: not started
	tasks   *tasks
	stop    context.CancelFunc // of ctx
	running bool               // the goroutine exists
	pending bool               // it was notified before it was started
	closed  bool
	wake    chan struct{} // has room for one
}

// tasks are the goroutines of an informer, which waits for them before it ends.
type tasks struct {
	mu     sync.Mutex
	waited bool
	group  sync.WaitGroup
}

// start starts a goroutine, unless it is too late for that.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waited {
		return false
	}
	t.group.Go(f)
	return true
}

// wait returns when no goroutine runs. None is started any more.
func (t *tasks) wait() {
	t.mu.Lock()
	t.waited = true
	t.mu.Unlock()
	t.group.Wait()
}

// start lets the worker work until ctx ends, in goroutines of t.
func (w *worker) start(ctx context.Context, t *tasks) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.ctx, w.tasks = ctx, t
	w.wake = make(chan struct{}, 1)
	if w.pending {
		w.launch()
	}
}

// notify has the worker work, now or once more.
func (w *worker) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
	case w.ctx == nil:
		w.pending = true
	case !w.running:
		w.launch()
	default:
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// launch starts the goroutine. mu is held.
func (w *worker) launch() {
	ctx, stop := context.WithCancel(w.ctx)
	if w.running = w.tasks.start(func() { w.run(ctx, stop) }); !w.running {
		stop()
		return // its informer ends, and closes it
	}
	w.stop = stop
}

// run works until it has had nothing to do for a while.
func (w *worker) run(ctx context.Context, stop context.CancelFunc) {
	defer stop()
	idle := time.NewTimer(workerStays)
	defer idle.Stop()
	for worked := false; ; {
		w.work(ctx)
		select {
		case <-w.wake:
			worked = true
		case <-idle.C:
			if !worked && w.rest() {
				return
			}
			worked = false
			idle.Reset(workerStays)
		case <-ctx.Done():
			w.mu.Lock()
			w.running = false
			w.mu.Unlock()
			w.close()
			return
		}
	}
}

// rest ends the goroutine, unless it was notified just now.
func (w *worker) rest() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.wake) > 0 {
		return false
	}
	w.running = false
	return true
}

func (w *worker) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// close ends the worker. A call of work that runs ends normally.
func (w *worker) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.running {
		w.stop()
		return // the goroutine calls close again
	}
	if w.ended != nil {
		w.ended()
		w.ended = nil
	}
}
