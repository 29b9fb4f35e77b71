// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
	"github.com/setpoint-io/setpoint/watch/sink"
)

const (
	// lastSending is how long sinks go on after the watch has been stopped. Events that they
	// have not sent by then are in the journal for the next start.
	lastSending = 2 * time.Second
	// inMemory is how many events wait for a sink without a journal, at most. Then the
	// watch waits.
	inMemory = 10_000
)

// connect sets where the watch publishes, and returns the runners of the sinks.
func (p *Pipeline) connect() ([]*sink.Runner, error) {
	route := p.route()
	switch {
	case p.journal != nil:
		p.o.Journal, p.o.Route, p.o.Words, p.o.recent = p.journal, route, format.Words, sink.NewRecent()
	case len(p.o.Sinks) == 1 && p.o.Sinks[0].Terminal != nil:
		p.o.Tell = p.tell(route)
		return nil, nil
	default:
		p.o.Log.Warn("there is no cursor: what waits to be sent is in memory, and lost at the end of this process")
		p.o.Tell, p.memory = p.tell(route), map[string]*sink.Direct{}
	}
	var runners []*sink.Runner
	for i, s := range p.o.Sinks {
		var outbox sink.Outbox
		if p.journal != nil {
			outbox = sink.Journaled(p.journal, s.Name, p.o.recent)
		} else {
			p.memory[s.Name] = sink.NewDirect(inMemory)
			outbox = p.memory[s.Name]
		}
		r, err := sink.NewRunner(sink.RunnerOptions{
			Name: s.Name, Sink: p.sinks[i], Outbox: outbox, Delivery: s.Effective(), Log: p.o.Log,
		})
		if err != nil {
			return nil, err
		}
		runners = append(runners, r)
	}
	return runners, nil
}

// route returns the function that names the sinks of an event.
func (p *Pipeline) route() func(*event.Event) ([]string, error) {
	if p.o.Router != nil {
		return p.o.Router.Route
	}
	var names []string
	for _, s := range p.o.Sinks {
		names = append(names, s.Name)
	}
	return func(*event.Event) ([]string, error) { return names, nil }
}

// tell returns Options.Tell for a watch without a journal: it puts events into memory, or prints them
// if there is none for the sink.
func (p *Pipeline) tell(route func(*event.Event) ([]string, error)) func(context.Context, []*event.Event) error {
	return func(ctx context.Context, events []*event.Event) error {
		var printed []*event.Event
		for _, e := range events {
			names, err := route(e)
			if err != nil {
				p.o.Log.Warn("a route cannot be decided; the event goes where the others say", "event", e.ID, "error", err)
			}
			for _, name := range names {
				if outbox := p.memory[name]; outbox == nil {
					printed = append(printed, e)
				} else if err := outbox.Put(ctx, e); err != nil {
					return err
				}
			}
		}
		return p.print(ctx, printed)
	}
}

// print prints events, and returns when they are printed.
func (p *Pipeline) print(ctx context.Context, events []*event.Event) error {
	for len(events) > 0 {
		r := p.sinks[0].Send(ctx, events)
		for _, refused := range r.Refused {
			e := events[refused.Index]
			p.o.Log.Warn("an event cannot be printed", "event", e.ID, "object", e.Key.String(), "error", refused.Err)
		}
		if r.Err != nil {
			return r.Err
		}
		if r.Done == 0 {
			return errors.New("printing events: none of them is done, and nothing says why")
		}
		events = events[r.Done:]
	}
	return nil
}

// drain waits until the sinks have sent what they can.
func (p *Pipeline) drain(ctx context.Context, runners []*sink.Runner, failure error) {
	if len(runners) == 0 {
		return
	}
	patience := lastSending
	if p.o.Once && failure == nil && ctx.Err() == nil {
		patience = oncePatience
	}
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if ctx.Err() == nil { // a signal shortens it
		shorten := context.AfterFunc(ctx, func() { time.AfterFunc(lastSending, cancel) })
		defer shorten()
	}
	what := "they are lost: there is no cursor"
	if p.journal != nil {
		what = "they are sent after the next start"
	}
	var all sync.WaitGroup
	for _, r := range runners {
		all.Go(func() {
			err := r.Drained(waiting)
			if s := r.Status(); err != nil && s.Waiting > 0 {
				p.o.Log.Warn("a sink did not take all events in time", "sink", s.Name, "events", s.Waiting, "so", what, "lastError", s.LastError)
			}
		})
	}
	all.Wait()
}

// from sets the source of CloudEvents to the server, unless the options name one.
func from(server string, o sink.Options) sink.Options {
	switch {
	case o.Terminal != nil && o.Terminal.Source == "":
		t := *o.Terminal
		t.Source, o.Terminal = server, &t
	case o.File != nil && o.File.Source == "":
		f := *o.File
		f.Source, o.File = server, &f
	case o.Webhook != nil && o.Webhook.Source == "":
		h := *o.Webhook
		h.Source, o.Webhook = server, &h
	}
	return o
}

// wantsObjects reports whether a sink sends whole objects.
func wantsObjects(o sink.Options) bool {
	return o.Terminal != nil && o.Terminal.Objects || o.File != nil && o.File.Objects || o.Webhook != nil && o.Webhook.Objects
}
