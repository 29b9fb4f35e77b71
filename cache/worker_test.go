// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// newWorker returns a worker that counts what it is notified of, and the number that it has seen to.
func newWorker(t *testing.T) (w *worker, add func(), done *atomic.Int64, ended *atomic.Int64) {
	t.Helper()
	var waiting atomic.Int64
	var running atomic.Int64
	done, ended = new(atomic.Int64), new(atomic.Int64)
	w = &worker{
		work: func(context.Context) {
			if running.Add(1) > 1 {
				t.Error("two calls of work run")
			}
			done.Add(waiting.Swap(0))
			running.Add(-1)
		},
		ended: func() { ended.Add(1) },
	}
	return w, func() { waiting.Add(1); w.notify() }, done, ended
}

// workers returns how many goroutines of workers there are.
func workers() int {
	synctest.Wait()
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "cache.(*worker).run(")
}

func TestAWorkerHasAGoroutineWhileThereIsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all tasks
		w, add, done, ended := newWorker(t)
		add() // before it is started
		ctx, cancel := context.WithCancel(t.Context())
		w.start(ctx, &all)
		for i, c := range []struct {
			pass  time.Duration
			there int
		}{{0, 1}, {workerStays - time.Second, 1}, {2 * workerStays, 0}, {time.Hour, 0}} {
			if i > 0 {
				time.Sleep(c.pass)
				if n := workers(); n != c.there {
					t.Errorf("%d: after a pause of %s there are %d goroutines, want %d", i, c.pass, n, c.there)
				}
				add()
			}
			if n := workers(); n != 1 || done.Load() != int64(i+1) {
				t.Errorf("%d: with work there are %d goroutines, want one; it has seen to %d", i, n, done.Load())
			}
		}
		for range 100 { // it works now and then, and is not started each time
			time.Sleep(workerStays / 2)
			if n := workers(); n != 1 {
				t.Errorf("%d goroutines, want one", n)
			}
			add()
		}
		cancel()
		synctest.Wait()
		all.wait()
		add()
		if n := workers(); n != 0 || ended.Load() != 1 {
			t.Errorf("at the end there are %d goroutines, and it ended %d times", n, ended.Load())
		}
	})
}

func TestAWorkerThatRestsEndsOnce(t *testing.T) {
	for name, end := range map[string]func(w *worker, cancel func(), all *tasks){
		"closed":                     func(w *worker, _ func(), _ *tasks) { w.close(); w.close() },
		"its informer ends":          func(w *worker, cancel func(), all *tasks) { cancel(); w.close(); all.wait() },
		"notified as all is waited":  func(w *worker, cancel func(), all *tasks) { cancel(); all.wait(); w.notify(); w.close() },
		"notified as all has ended":  func(w *worker, cancel func(), all *tasks) { cancel(); w.notify(); all.wait(); w.close() },
		"closed, then its ctx ends":  func(w *worker, cancel func(), all *tasks) { w.notify(); w.close(); cancel(); all.wait() },
		"closed before it has begun": func(w *worker, _ func(), all *tasks) { w.close(); w.start(context.Background(), all); w.notify() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var all tasks
				w, add, _, ended := newWorker(t)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if name != "closed before it has begun" {
					w.start(ctx, &all)
					add()
					time.Sleep(time.Minute)
				}
				end(w, cancel, &all)
				if n := workers(); n != 0 || ended.Load() != 1 {
					t.Errorf("there are %d goroutines, and it ended %d times", n, ended.Load())
				}
			})
		})
	}
}

// Notifications come at the very moment at which a goroutine rests, and others just before and after it.
func TestAWorkerMissesNoNotification(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	synctest.Test(t, func(t *testing.T) {
		var all tasks
		w, add, done, _ := newWorker(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer all.wait()
		defer cancel()
		w.start(ctx, &all)
		for i := range int64(2000) {
			add()
			time.Sleep(workerStays + time.Duration(random.IntN(3)-1)*time.Duration(random.IntN(2)))
			if done.Load() != i+1 {
				synctest.Wait()
			}
			if done.Load() != i+1 {
				t.Fatalf("it has seen to %d of %d", done.Load(), i+1)
			}
		}
	})
}
