// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
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

	mu         sync.Mutex
	given      map[*entry]*handout
	order      []*entry
	delivering map[*entry][]string // names of the handlers that are being called with an entry
}

type handout struct {
	object   object.Object
	holders  []string
	reported bool // that it was changed; later holders have not changed it
}

// How much is recorded: objects, and functions for each.
const (
	handoutsMost = 10_000
	holdersMost  = 8
)

func newHandouts(kind string, log *slog.Logger) *handouts {
	return &handouts{kind: kind, log: log, given: map[*entry]*handout{}, delivering: map[*entry][]string{}}
}

// note records that the caller of the package has got an object.
func (h *handouts) note(e *entry, o object.Object) {
	holders := []string{caller()}
	h.mu.Lock()
	defer h.mu.Unlock()
	if holders[0] == "" {
		// The goroutine is one of the cache. An adapter reads the object there, and calls the
		// handler with it.
		holders = h.delivering[e]
	}
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
	for _, holder := range holders {
		known.add(holder)
	}
}

// add records a further holder of an object that was handed out.
func (h *handouts) add(e *entry, holder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.given[e]; known != nil {
		known.add(holder)
	}
}

func (h *handout) add(holder string) {
	if len(h.holders) < holdersMost && !slices.Contains(h.holders, holder) {
		h.holders = append(h.holders, holder)
	}
}

// deliver records that a handler is being called, until the function is called that it returns.
func (h *handouts) deliver(d *delta, handler string) (ended func()) {
	if h == nil {
		return func() {}
	}
	holder := fmt.Sprintf("the handler %q", handler)
	entries := []*entry{d.old, d.new, d.last}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range entries {
		if e != nil {
			h.delivering[e] = append(h.delivering[e], holder)
		}
	}
	return func() { h.delivered(entries, holder) }
}

func (h *handouts) delivered(entries []*entry, holder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range entries {
		if e == nil {
			continue
		}
		h.delivering[e] = slices.DeleteFunc(h.delivering[e], func(name string) bool { return name == holder })
		if len(h.delivering[e]) == 0 {
			delete(h.delivering, e)
		}
	}
}

// caller is the first function on the stack that is not on the way from this package to the program.
// It is empty if there is none. Beyond the call of an index function there is the writer of the store, or who added the
// index: neither has got the object.
func caller() string {
	var stack [64]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(2, stack[:])])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if strings.HasSuffix(frame.Function, "setpoint/cache.(*store).values") {
			return ""
		}
		if frame.Function != "" && (!onTheWay(frame.Function) || strings.HasSuffix(frame.File, "_test.go")) {
			return fmt.Sprintf("%s (%s:%d)", frame.Function, frame.File, frame.Line)
		}
	}
	return ""
}

// onTheWay reports whether a function hands objects on: one of the cache, of an adapter, of the
// library that the adapter serves, or one that begins a goroutine.
func onTheWay(function string) bool {
	for _, ours := range [...]string{"setpoint/cache.", "setpoint/adapters/", "setpoint/internal/parallel."} {
		if strings.Contains(function, ours) {
			return true
		}
	}
	for _, others := range [...]string{"k8s.io/client-go/", "sigs.k8s.io/controller-runtime/", "sync.", "runtime."} {
		if strings.HasPrefix(function, others) {
			return true
		}
	}
	return false
}

// compare returns a line for each object that is not as it was, once.
func (h *handouts) compare() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lines []string
	for e, given := range h.given {
		if given.reported {
			continue
		}
		fresh, err := e.decode()
		if err != nil || equality.Semantic.DeepEqual(fresh, given.object) {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %s at resourceVersion %s; it was handed to %s",
			h.kind, e.key(), e.at(), cmp.Or(strings.Join(given.holders, ", "), "an unknown caller")))
		given.reported = true
	}
	return lines
}
