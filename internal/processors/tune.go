// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package processors

import (
	"context"
	"os"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

// Tune sets GOMAXPROCS to what the process uses, until ctx ends or end is called, which waits. Then it has the default again. Tune does nothing if
// the user has chosen GOMAXPROCS by the environment variable, or if the system does not say what a process uses.
//
// burst is closed when there will be much to do, and the process has all processors at once. It may be nil. A manager
// that takes over has most to do in its first quarter of a second, which passes before the next look.
func Tune(ctx context.Context, burst <-chan struct{}) (end func()) {
	if _, ok := cpuTime(); !ok || os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer runtime.SetDefaultGOMAXPROCS() // which follows a limit of the container, if that changes
		govern(ctx, burst)
	})
	return func() {
		cancel()
		watching.Wait()
	}
}

// waiting returns how many goroutines could run and wait for a processor.
func waiting() int {
	sample := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
	if metrics.Read(sample); sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int(sample[0].Value.Uint64())
}

func govern(ctx context.Context, burst <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	n := runtime.GOMAXPROCS(0)
	g := governor{most: n, now: n}
	was, _ := cpuTime()
	last := time.Now()
	for {
		var wants int
		select {
		case <-tick.C:
			used, _ := cpuTime()
			now := time.Now()
			wants = g.come(used-was, now.Sub(last), waiting())
			was, last = used, now
		case <-burst:
			burst = nil
			wants = g.all()
		case <-ctx.Done():
			return
		}
		switch wants {
		case n:
		case g.most:
			// The limit of a container may have changed meanwhile.
			runtime.SetDefaultGOMAXPROCS()
			n = runtime.GOMAXPROCS(0)
			g.most, g.now = n, n
		default:
			n = wants
			runtime.GOMAXPROCS(n)
		}
	}
}
