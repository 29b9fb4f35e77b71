// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chaostest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/fakechaos"
	"github.com/setpoint-io/setpoint/object"
)

// Informers is an informer with handlers and readers. Make one with [Start].
type Informers[T object.Object] struct {
	informer cache.SharedInformer[T]
	judge    *fakechaos.Judge
	names    int // how many objects there can be

	handlers []*handler[T] // Disturb changes it, in the goroutine that reads it
	gate     Gate
	late     bool
	cancel   context.CancelFunc
	ended    chan error
	reading  sync.WaitGroup
	read     chan struct{} // asks the reader to read now
}

// handler is one that has been added.
type handler[T object.Object] struct {
	observer     *fakechaos.Observer
	registration *cache.Registration
	every        bool
}

// Start starts an informer of T and handlers for it. names is how many objects
// there can be. Stop it.
func Start[T object.Object](c *client.Client, j *fakechaos.Judge, names int, seed uint64, options ...cache.InformerOption) (*Informers[T], error) {
	factory := cache.NewFactory(c, nil)
	i := &Informers[T]{
		informer: cache.Informer[T](factory, options...), judge: j, names: names,
		ended: make(chan error, 1), read: make(chan struct{}, 1),
	}
	for _, name := range []string{"quick", "every", "slow", "panicking", "blocked", "resync", "comes and goes"} {
		if err := i.add(name, seed); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:gosec // Stop calls it
	i.cancel = cancel
	go func() { i.ended <- factory.Run(ctx) }()
	i.reading.Go(func() { i.readSnapshots(ctx) })
	return i, nil
}

// Stop stops everything and returns when the informer says that it has ended.
func (i *Informers[T]) Stop() error {
	i.gate.Open(true)
	i.cancel()
	err := <-i.ended
	i.reading.Wait()
	return err
}

// add adds a handler of a sort.
func (i *Informers[T]) add(name string, seed uint64) error {
	h := &handler[T]{observer: i.judge.Observer(name), every: name == "every"}
	dice := rand.New(rand.NewPCG(seed, uint64(len(name)))) // of the handler's goroutine alone
	o := cache.HandlerOptions{Name: name, EveryStep: h.every}
	after := func() {}
	switch name {
	case "quick":
		after = i.wakeReader
	case "slow":
		after = func() { time.Sleep(time.Duration(dice.IntN(100)) * time.Millisecond) }
	case "panicking":
		after = func() {
			if dice.IntN(20) == 0 {
				panic("as it does from time to time")
			}
		}
	case "blocked":
		after = i.gate.Pass
	case "resync":
		o.Resync = 2 * time.Minute
	}
	r, err := i.informer.AddHandler(func(e cache.Event[T]) { tell(h.observer, e); after() }, o)
	if err != nil {
		return fmt.Errorf("adding handler %s: %w", name, err)
	}
	h.registration = r
	i.handlers = append(i.handlers, h)
	return nil
}

// tell passes an event on to an observer.
func tell[T object.Object](o *fakechaos.Observer, e cache.Event[T]) {
	switch key := e.Key(); e.Kind {
	case cache.Added:
		o.Added(key, seen(e.New))
	case cache.Updated, cache.Resync:
		o.Updated(key, seen(e.Old), seen(e.New))
	case cache.Replaced:
		o.Replaced(key, seen(e.Old), seen(e.New))
	case cache.Deleted:
		o.Deleted(key, seen(e.Old))
	}
}

func seen[T object.Object](item cache.Item[T]) fakechaos.Seen {
	m := item.Meta()
	return fakechaos.Seen{UID: m.UID, Version: string(m.Version)}
}

// wakeReader asks for a snapshot to be read while the writer goes on.
func (i *Informers[T]) wakeReader() {
	select {
	case i.read <- struct{}{}:
	default:
	}
}

// readSnapshots reads snapshots, again after a while, and holds them against what
// is true.
func (i *Informers[T]) readSnapshots(ctx context.Context) {
	for {
		select {
		case <-i.read:
		case <-ctx.Done():
			return
		}
		select {
		case <-i.informer.Synced():
		default:
			continue
		}
		snapshot := i.informer.Snapshot()
		first := contents(snapshot)
		i.judge.Snapshot(string(snapshot.Version()), first)
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			return
		}
		if !maps.Equal(first, contents(snapshot)) {
			i.judge.Breach(fakechaos.Unsound, "a snapshot at version %s has changed since it was read", snapshot.Version())
		}
	}
}

func contents[T object.Object](s cache.Snapshot[T]) map[object.Key]fakechaos.Seen {
	all := make(map[object.Key]fakechaos.Seen, s.Len())
	for key, item := range s.All() {
		all[key] = seen(item)
	}
	return all
}

// Version implements fakechaos.Candidate.
func (i *Informers[T]) Version() string { return string(i.informer.Snapshot().Version()) }

// Contents implements fakechaos.Candidate.
func (i *Informers[T]) Contents() map[object.Key]fakechaos.Content {
	all := map[object.Key]fakechaos.Content{}
	for key, item := range i.informer.All() {
		all[key] = fakechaos.Content{Seen: seen(item), Digest: func() (uint64, error) {
			o, err := item.Object()
			if err != nil {
				return 0, err
			}
			return fakechaos.Digest(o)
		}}
	}
	return all
}

// Observers implements fakechaos.Candidate.
func (i *Informers[T]) Observers() []*fakechaos.Observer {
	all := make([]*fakechaos.Observer, len(i.handlers))
	for n, h := range i.handlers {
		all[n] = h.observer
	}
	return all
}

// Disturb implements fakechaos.Candidate: handlers come late, and come and go. What
// waits for one is bounded by the number of objects.
func (i *Informers[T]) Disturb(r *rand.Rand) error {
	if !i.late {
		i.late = true
		return i.add("late", r.Uint64())
	}
	for _, h := range i.handlers {
		if s := h.registration.Status(); !h.every && s.Waiting > i.names {
			i.judge.Breach(fakechaos.Unbounded, "%d changes wait for handler %s, of %d objects", s.Waiting, s.Name, i.names)
		}
	}
	if r.IntN(20) > 0 {
		return nil
	}
	for n, h := range i.handlers {
		if h.observer.Name == "comes and goes" {
			h.registration.Remove()
			i.handlers = append(i.handlers[:n], i.handlers[n+1:]...)
			return i.add("comes and goes", r.Uint64())
		}
	}
	return nil
}

// Quiet implements fakechaos.Candidate: the handler that blocks is let through.
func (i *Informers[T]) Quiet(yes bool) { i.gate.Open(yes) }
