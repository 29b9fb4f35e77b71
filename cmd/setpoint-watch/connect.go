// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// inMemory is how many events wait for a sink without a journal, at most. Then the watch
// waits.
const inMemory = 10_000

// connect tells the watch who is told.
func (p *pipeline) connect() error {
	for _, s := range p.sinks {
		p.options.WithObjects = p.options.WithObjects || wantsObjects(s.Options)
	}
	route := p.route()
	if p.journal == nil && p.config == nil {
		p.options.Tell = p.print
		return nil
	}
	if p.journal == nil {
		p.log.Warn("there is no cursor: what waits to be sent is in memory, and lost at the end of this process")
		p.memory = map[string]*sink.Direct{}
		p.options.Tell = func(ctx context.Context, events []*event.Event) error {
			for _, e := range events {
				names, err := route(e)
				if err != nil {
					p.log.Warn("a route cannot be decided; the event goes where the others say", "event", e.ID, "error", err)
				}
				for _, name := range names {
					if err := p.memory[name].Put(ctx, e); err != nil {
						return err
					}
				}
			}
			return nil
		}
	} else {
		p.options.Journal, p.options.Route, p.options.Words = p.journal, route, format.Words
	}
	for i, s := range p.sinks {
		r, err := sink.NewRunner(sink.RunnerOptions{
			Name: s.Name, Sink: p.made[i], Outbox: p.outbox(s.Name), Delivery: s.Options.Effective(), Log: p.log,
		})
		if err != nil {
			return err
		}
		p.runners = append(p.runners, r)
	}
	return nil
}

// route returns what says where an event goes.
func (p *pipeline) route() func(*event.Event) ([]string, error) {
	if p.config == nil || len(p.config.Sinks) == 0 {
		return func(*event.Event) ([]string, error) { return []string{terminalName}, nil }
	}
	return p.config.Router().Route
}

func (p *pipeline) outbox(name string) sink.Outbox {
	if p.journal == nil {
		p.memory[name] = sink.NewDirect(inMemory)
		return p.memory[name]
	}
	return sink.Journaled(p.journal, name)
}

// print prints events, and waits until they are.
func (p *pipeline) print(ctx context.Context, events []*event.Event) error {
	for len(events) > 0 {
		r := p.made[0].Send(ctx, events)
		p.logRefused(events, r.Refused)
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

// wantsObjects reports whether a sink sends whole objects.
func wantsObjects(o sink.Options) bool {
	switch {
	case o.Terminal != nil:
		return o.Terminal.Objects
	case o.File != nil:
		return o.File.Objects
	case o.Webhook != nil:
		return o.Webhook.Objects
	}
	return false
}
