// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"fmt"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
	"github.com/setpoint-io/setpoint/adapters/internal/handlername"
	setpoint "github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

const (
	// shortestResync is the shortest period between two resyncs of a handler.
	// Source: k8s.io/client-go/tools/cache, minimumResyncPeriod.
	shortestResync = time.Second
	// afterPanic is how long a handler rests after a panic.
	// Source: k8s.io/client-go/tools/cache, processorListener.run.
	afterPanic = time.Second
)

// registration is a handler of an informer. It implements
// cache.ResourceEventHandlerRegistration.
type registration struct {
	informer *Informer
	handler  cache.ResourceEventHandler
	name     string
	log      klog.Logger
	resync   time.Duration
	synced   chan struct{}
	ended    chan struct{}
	endOnce  sync.Once
	inner    *setpoint.Registration // nil until the informer reads; guarded by the informer's mu
	panicked bool                   // in the call before; used by the handler's goroutine alone
}

// AddEventHandler adds a handler with the resync period of the informer, at any time until the
// informer has stopped. A goroutine of its own calls the handler with one event at a time.
func (i *Informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler that is notified of every object once in each
// period. 0 is never.
func (i *Informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions adds a handler.
func (i *Informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, o cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return nil, stoppedError(handler)
	}
	r := &registration{
		informer: i, handler: handler, name: handlername.Of(handler), log: klog.Background(),
		synced: make(chan struct{}), ended: make(chan struct{}),
	}
	if o.Logger != nil {
		r.log = *o.Logger
	}
	resync := i.options.ResyncPeriod
	if o.ResyncPeriod != nil {
		resync = *o.ResyncPeriod
	}
	r.resync = i.resyncOf(r.log, resync)
	if informer := i.current.Load(); informer != nil && !r.begin(*informer) {
		return nil, stoppedError(handler)
	}
	i.registrations[r] = struct{}{}
	return r, nil
}

func stoppedError(handler cache.ResourceEventHandler) error {
	return fmt.Errorf("handler %v was not added to shared informer because it has stopped already", handler)
}

// resyncOf returns the period of a handler that asks for one. As with client-go, an informer
// without a period of its own does no resyncs, and after the start no handler has a shorter one
// than the shortest before.
func (i *Informer) resyncOf(log klog.Logger, wanted time.Duration) time.Duration {
	if wanted <= 0 {
		return 0
	}
	if i.resync == 0 {
		log.Info("Warning: the informer does no resyncs, and the handler gets none", "wanted", wanted)
		return 0
	}
	period := max(wanted, shortestResync)
	if i.started {
		period = max(period, i.resync)
	} else {
		i.resync = min(period, i.resync)
	}
	if period != wanted {
		log.Info("Warning: the resync period is too short and was increased", "wanted", wanted, "period", period)
	}
	return period
}

// RemoveEventHandler removes a handler. Changes that wait for it are dropped, and a call that runs
// ends normally. A handler that was removed before, or is another informer's, is no error.
func (i *Informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok {
		return fmt.Errorf("removing a handler: a %T is no registration of this informer", handle)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.registrations[r]; !known {
		return nil
	}
	delete(i.registrations, r)
	if r.inner == nil {
		r.end()
		return nil
	}
	r.inner.Remove()
	return nil
}

// begin adds the handler to the informer of the cache, and reports whether that takes handlers
// still. The mutex of the informer is held.
func (r *registration) begin(informer setpoint.SharedInformer[object.Object]) bool {
	inner, err := informer.AddHandler(r.handle, setpoint.HandlerOptions{
		Name: r.name, Resync: r.resync, EveryStep: true,
	})
	if err != nil {
		r.end()
		return false
	}
	r.inner = inner
	go func() {
		select {
		case <-inner.Synced():
			close(r.synced)
			<-inner.Ended()
		case <-inner.Ended():
		}
		r.end()
	}()
	return true
}

func (r *registration) end() { r.endOnce.Do(func() { close(r.ended) }) }

// HasSynced reports whether the handler has returned from all calls for the objects that were
// there when it was added, or that the informer listed first.
func (r *registration) HasSynced() bool { return cache.IsDone(r.HasSyncedChecker()) }

// HasSyncedChecker waits for what HasSynced reports.
func (r *registration) HasSyncedChecker() cache.DoneChecker {
	return checker{r.informer.HasSyncedChecker().Name() + " + event handler " + r.name, r.synced}
}

// ShutdownChan is closed when no call of the handler runs and none will begin.
// cache.ShutDownEventHandler waits for it.
func (r *registration) ShutdownChan() <-chan struct{} { return r.ended }

// handle calls the handler with an event of the cache.
func (r *registration) handle(e setpoint.Event[object.Object]) {
	if r.panicked {
		time.Sleep(afterPanic)
	}
	r.panicked = true // until the handler has returned
	defer func() {
		if p := recover(); p != nil {
			crash(p)
		}
	}()
	defer utilruntime.HandleCrashWithLogger(r.log)
	r.call(e)
	r.panicked = false
}

// crash ends the process with a panic that utilruntime.HandleCrashWithLogger has passed on. That
// is what client-go does, unless utilruntime.ReallyCrash is false. The cache goes on after a panic
// in its own goroutine, so the panic is one of another goroutine.
func crash(p any) {
	go panic(p)
	select {} // until the process has ended
}

func (r *registration) call(e setpoint.Event[object.Object]) {
	if e.Kind == setpoint.Deleted {
		r.deleted(e)
		return
	}
	now, err := e.New.Object()
	if err != nil {
		utilruntime.HandleErrorWithLogger(r.log, err, "A handler does not get an object that cannot be decoded", "object", e.Key().String())
		return
	}
	switch e.Kind {
	case setpoint.Added:
		r.handler.OnAdd(now, e.Initial)
	case setpoint.Resync:
		r.handler.OnUpdate(now, now)
	case setpoint.Updated, setpoint.Replaced, setpoint.Deleted:
		before, err := e.Old.Object()
		if err != nil {
			utilruntime.HandleErrorWithLogger(r.log, err, "A handler gets an update of an object as an addition, because the old state cannot be decoded", "object", e.Key().String())
			r.handler.OnAdd(now, false) // an update from the new state to itself would look like a resync
			return
		}
		r.handler.OnUpdate(before, now)
	}
}

// deleted reports a deletion: with the last state if the watch brought it, and else with the last
// state that the informer has seen, in a tombstone. The owner of an object must hear of its deletion
// whatever the object contains, so the tombstone of one that cannot be decoded has its metadata.
func (r *registration) deleted(e setpoint.Event[object.Object]) {
	last, err := e.Old.Object()
	switch {
	case err != nil:
		utilruntime.HandleErrorWithLogger(r.log, err, "The last state of a deleted object cannot be decoded; a handler gets the metadata alone", "object", e.Key().String())
		r.handler.OnDelete(decode.TombstoneOfMetadata(e.Old, r.informer.source.empty()))
	case e.Stale:
		r.handler.OnDelete(decode.Tombstone(last))
	default:
		r.handler.OnDelete(last)
	}
}
