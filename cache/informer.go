// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// informer is what the SharedInformers of one selection share: a reflector, a store and the
// queues of the handlers. It is not generic, so that a program has its code once, not for each
// kind.
type informer struct {
	name     string // plural of the kind, for the log
	kind     object.Ref
	selects  string // description of the selection; empty: all whole objects
	chosen   chosen
	client   *client.Client // nil: it reads from something else, as in tests
	log      *slog.Logger
	store    *store
	reflect  reflector
	gather   atomic.Int64 // how long changes may wait before they are read: a time.Duration
	versions versionWaits
	content  *content

	// references, key and stop are the factory's, release leads there.
	references int
	key        selection
	stop       context.CancelFunc
	release    func()

	// again retries the transform with a state for which it failed; nil: there is no transform.
	again func(*frame, wire.Encoding, []byte) error

	// writing is held by writers: the reflector, the packing of what is at rest, retries of a
	// transform, and a succession. It protects archive, batch and relist, and is taken before mu.
	writing sync.Mutex
	archive *archive
	batch   batch
	relist  relist

	// mu makes a change of the store and its delivery one step for a handler that is being
	// added. Readers do not take it.
	mu       sync.Mutex
	handlers []*Registration
	gone     map[object.Key][]goneWait // for the ends of objects
	faults   map[object.Key]*fault     // objects whose newest state cannot be used
	faulted  uint64                    // how often there was one more
	running  context.Context           // nil: not started
	tasks    tasks
	stopped  bool
	taken    []*informer // that have handed their users on to this one

	// next is the successor, which has the users. It is set with mu, writing and the store's lock held.
	next        atomic.Pointer[informer]
	stopReading context.CancelFunc // nil: not started

	synced    chan struct{} // closed with the first whole state
	isSynced  atomic.Bool
	problem   atomic.Pointer[problem]
	onTrouble func(error) // called with each failure; nil: nothing is called
	said      said
	counts    counts
	ended     chan struct{} // closed when run has returned
}

func newInformer(name string, source source, c *content, log *slog.Logger) *informer {
	i := &informer{name: name, log: log, content: c, archive: newArchive(c), synced: make(chan struct{}), ended: make(chan struct{}), gone: map[object.Key][]goneWait{}, faults: map[object.Key]*fault{}}
	i.archive.changing.rest = i.packResting
	i.store = newStore(func(err error) { log.Error("an index function failed", "kind", name, "error", err) })
	c.store = i.store
	i.reflect = reflector{source: source, sink: i}
	return i
}

// run reads from the server until ctx ends, and returns when nothing of it runs.
func (i *informer) run(ctx context.Context) error {
	i.mu.Lock()
	if i.running != nil {
		i.mu.Unlock()
		return fmt.Errorf("running the informer of %s: it has been run before", i.name)
	}
	i.running = ctx
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	i.stopReading = stopReading
	for _, r := range i.handlers {
		i.startHandler(r)
	}
	i.mu.Unlock()
	if i.again != nil {
		i.tasks.start(func() { i.retryFaults(reading) }) // a successor has the faults from then on
	}

	i.reflect.run(reading)
	if i.next.Load() != nil {
		i.retire(ctx)
	}

	i.mu.Lock()
	i.stopped = true
	i.mu.Unlock()
	i.awaitHandlers()
	i.stopPacking()
	i.content.stop()
	close(i.ended)
	i.endIdle()
	return nil
}

// neverRun ends an informer that is not running and will not be. It may be called more
// than once.
func (i *informer) neverRun() {
	defer i.endIdle()
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.stopped {
		i.stopped = true
		for _, r := range i.handlers {
			r.worker.close()
		}
		close(i.ended)
	}
}

// patience is how long a wait may take before it is logged.
const patience = 5 * time.Second

// awaitHandlers waits for the calls that are running, and logs the handlers if that takes long.
func (i *informer) awaitHandlers() {
	saying := time.AfterFunc(patience, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		for _, r := range i.handlers {
			if began := r.busy.Load(); began != 0 {
				i.log.Warn("stopping waits for a handler that does not return", "kind", i.name,
					"handler", r.name, "busy", time.Since(time.Unix(0, began)).Round(time.Second).String())
			}
		}
	})
	defer saying.Stop()
	i.mu.Lock()
	for _, r := range i.handlers {
		r.worker.close()
	}
	i.mu.Unlock()
	i.tasks.wait()
}
