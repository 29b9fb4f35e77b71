// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
)

// Outbox is what waits to be sent to one sink, in order. Its methods do not wait for the
// sink.
type Outbox interface {
	// Next returns the oldest items, n at most, and leaves them in the outbox. It returns none if
	// nothing waits. After ErrClosed nothing will ever come.
	Next(n int) ([]Item, error)
	// Ack removes items that Next returned: the first of them, and as many as follow.
	Ack(items []Item) error
	// Wake returns a channel that is readable, or closed, when something may have come
	// since Wake was called.
	Wake() <-chan struct{}
	// Waiting returns how many items wait, and when the oldest of them was seen; the zero
	// time if none does.
	Waiting() (n int, oldest time.Time)
}

// Item is an event in an Outbox.
type Item struct {
	// Seq rises within an outbox.
	Seq   uint64
	Event *event.Event
	// Err is set, and Event is nil, if the event cannot be read. The Runner drops it.
	Err error
}

// ErrClosed is returned by an outbox that is closed and empty, and for events put into one
// that is closed.
var ErrClosed = errors.New("the outbox is closed")

// Direct is an Outbox in memory, for a sink without a journal. Its events are lost with the
// process. It is bounded: Put waits while it is full. It is safe for concurrent use.
type Direct struct {
	limit int

	mu     sync.Mutex
	items  []Item
	seq    uint64
	closed bool
	came   chan struct{} // closed when something comes, and made anew
	left   chan struct{} // closed when something leaves, and made anew
}

// NewDirect returns an Outbox for up to limit events; 1 if limit is less.
func NewDirect(limit int) *Direct {
	return &Direct{limit: max(limit, 1), came: make(chan struct{}), left: make(chan struct{})}
}

// Put adds an event. While the outbox is full it waits, until ctx ends.
func (d *Direct) Put(ctx context.Context, e *event.Event) error {
	for {
		d.mu.Lock()
		if d.closed {
			d.mu.Unlock()
			return ErrClosed
		}
		if len(d.items) < d.limit {
			d.seq++
			d.items = append(d.items, Item{Seq: d.seq, Event: e})
			d.announce(&d.came)
			d.mu.Unlock()
			return nil
		}
		left := d.left
		d.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close says that no more events come. A Runner ends when it has sent what is left.
func (d *Direct) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		d.announce(&d.came)
		d.announce(&d.left)
	}
}

func (d *Direct) announce(c *chan struct{}) {
	close(*c)
	*c = make(chan struct{})
}

// Next returns the oldest events.
func (d *Direct) Next(n int) ([]Item, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.items) == 0 && d.closed {
		return nil, ErrClosed
	}
	return append([]Item(nil), d.items[:min(max(n, 0), len(d.items))]...), nil
}

// Ack removes events.
func (d *Direct) Ack(items []Item) error {
	if len(items) == 0 {
		return nil
	}
	last := items[len(items)-1].Seq
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for n < len(d.items) && d.items[n].Seq <= last {
		d.items[n] = Item{} // the event is not held any longer
		n++
	}
	if d.items = d.items[n:]; n > 0 {
		d.announce(&d.left)
	}
	return nil
}

// Wake returns a channel that is closed when something comes.
func (d *Direct) Wake() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.came
}

// Waiting returns how many events wait.
func (d *Direct) Waiting() (int, time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.items) == 0 {
		return 0, time.Time{}
	}
	return len(d.items), d.items[0].Event.Time
}
