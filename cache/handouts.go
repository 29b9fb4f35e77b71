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

// DetectMutation has the factory look, in each period, whether somebody has changed an
// object of the cache, and log who was handed it. It must be called before the first
// informer is asked for. It is for tests and for the hunt after such a mistake: every
// object that was read lately stays in memory and is decoded again to be compared.
func (f *Factory) DetectMutation(period time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.detect = period
}

// Mutated compares now what DetectMutation would in its next period, and returns a
// line for each object that was changed: which it is, how it differs from what the
// server sent, and who was handed it.
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

// handouts remembers which decoded objects were handed to whom.
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

// How much is remembered: objects, and who was handed one.
const (
	handoutsMost = 10_000
	holdersMost  = 8
)

func newHandouts(kind string, log *slog.Logger) *handouts {
	return &handouts{kind: kind, log: log, given: map[*entry]*handout{}}
}

// note remembers that an object was handed to who called into the package.
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
			return "somebody unknown"
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
