// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package parallel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Each calls f with each number below n once, and returns when all calls have returned. It uses as
// many CPUs as GOMAXPROCS, but one for fewer than two times least numbers: then it calls f in the
// goroutine of the caller alone. Numbers are given out least at a time.
//
// If f panics, Each panics in the goroutine of the caller, with the text and the stack of the
// first panic. Numbers that were not begun until then are left out.
func Each(n, least int, f func(int)) {
	workers := min(runtime.GOMAXPROCS(0), n/least)
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	w := work{n: n, least: least, f: f}
	var others sync.WaitGroup
	for range workers - 1 {
		others.Go(w.do)
	}
	w.do()
	others.Wait()
	if text := w.panicked.Load(); text != nil {
		panic(*text)
	}
}

// work is one call of Each.
type work struct {
	n, least int
	f        func(int)
	next     atomic.Int64
	panicked atomic.Pointer[string]
}

// do works until no number is left.
func (w *work) do() {
	defer func() {
		if p := recover(); p != nil {
			text := fmt.Sprintf("%v\n%s", p, debug.Stack())
			w.panicked.CompareAndSwap(nil, &text)
		}
	}()
	for w.panicked.Load() == nil {
		from := int(w.next.Add(int64(w.least))) - w.least
		if from >= w.n {
			return
		}
		for i := from; i < min(from+w.least, w.n); i++ {
			w.f(i)
		}
	}
}
