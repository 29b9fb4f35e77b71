// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/setpoint-io/setpoint/object"
)

// DetectMutation makes the factory check, once in each period, whether an object of the cache
// was changed, and log which functions have got it. It must be called before the first informer
// is made. It is for tests and for debugging: every object that was read lately stays in memory
// and is decoded again for the comparison.
func (f *Factory) DetectMutation(period time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.detect = period
}

// Mutated makes the check of DetectMutation now, and returns a line for each object that was
// changed, with the functions that have got it.
func (f *Factory) Mutated() []string {
	f.mu.Lock()
	var all []*handouts
	for _, i := range f.informers {
		if i.content.handouts != nil {
			all = append(all, i.content.handouts)
		}
	}
	f.mu.Unlock()
	var lines []string
	for _, h := range all {
		lines = append(lines, h.compare()...)
	}
	slices.Sort(lines)
	return lines
}

// watchHandouts looks in each period until ctx ends.
func (f *Factory) watchHandouts(ctx context.Context, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		for _, line := range f.Mutated() {
			f.log.Error("an object of the cache was changed; it is shared and read-only, and DeepCopy makes one of your own", "what", line)
		}
	}
}

// handouts records which functions have got which decoded objects.
type handouts struct {
	kind string
	log  *slog.Logger

	mu    sync.Mutex
	given map[*entry]*handout
	order []*entry
}

type handout struct {
	object  object.Object
	holders []string
}

// How much is recorded: objects, and functions for each.
const (
	handoutsMost = 10_000
	holdersMost  = 8
)

func newHandouts(kind string, log *slog.Logger) *handouts {
	return &handouts{kind: kind, log: log, given: map[*entry]*handout{}}
}

// note records that the caller of the package has got an object.
func (h *handouts) note(e *entry, o object.Object) {
	holder := caller()
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.given[e]
	if known == nil {
		if len(h.order) >= handoutsMost {
			delete(h.given, h.order[0])
			h.order = h.order[1:]
		}
		known = &handout{object: o}
		h.given[e] = known
		h.order = append(h.order, e)
	}
	if len(known.holders) < holdersMost && !slices.Contains(known.holders, holder) {
		known.holders = append(known.holders, holder)
	}
}

// caller is the first function on the stack that is not of this package.
func caller() string {
	var stack [32]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(2, stack[:])])
	for {
		frame, more := frames.Next()
		if !strings.Contains(frame.Function, "setpoint/cache.") || strings.HasSuffix(frame.File, "_test.go") {
			return fmt.Sprintf("%s (%s:%d)", frame.Function, frame.File, frame.Line)
		}
		if !more {
			return "an unknown caller"
		}
	}
}

// compare returns a line for each object that is not as it was, and forgets those.
func (h *handouts) compare() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lines []string
	for e, given := range h.given {
		fresh, err := e.decode()
		if err != nil || equality.Semantic.DeepEqual(fresh, given.object) {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %s at resourceVersion %s; it was handed to %s",
			h.kind, e.key(), e.at(), strings.Join(given.holders, ", ")))
		delete(h.given, e)
		h.order = slices.DeleteFunc(h.order, func(o *entry) bool { return o == e })
	}
	return lines
}
