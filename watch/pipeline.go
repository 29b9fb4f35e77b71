// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/setpoint-io/setpoint/watch/config"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// PipelineOptions say what is watched, and where its events go. Configured makes them from a
// configuration.
type PipelineOptions struct {
	// Options say what is watched. Journal, Route, WithObjects, Words and Tell are the
	// Pipeline's own.
	Options
	// Sinks are the sinks of the events: at least one.
	Sinks []config.Sink
	// Router says which events go to which sinks. Default: all events go to all sinks.
	Router *config.Router
	// Cursor is the file of the journal, in which events wait for the sinks, and which knows
	// at the next start what has been published. Without one, events wait in memory. If the
	// only sink is a terminal, the watch waits for it.
	Cursor string
	// CursorStates keeps the last state of each object in the cursor, hidden values replaced. The
	// first change after a restart then has its fields and all of its authors.
	CursorStates bool
	// Deps are what sinks need. The default of Client is the host's.
	Deps sink.Deps
}

// Configured returns the options of a configuration.
func Configured(c *config.Config) PipelineOptions {
	w := c.Watch
	o := PipelineOptions{
		Options: Options{
			Kinds: w.Kinds, All: w.All, Namespaces: w.Namespaces, ExcludeNamespaces: w.ExcludeNamespaces,
			Hide: slices.Clone(c.Hidden()), Labels: w.Labels, Fields: w.Fields, Existing: w.Initial, Window: w.Window, Settle: w.Settle,
		},
		Sinks: c.Sinks, Router: c.Router(), Cursor: c.Cursor, CursorStates: c.CursorStates,
	}
	for _, name := range w.Show {
		o.Show = append(o.Show, event.Class(name))
	}
	if condition := c.Where(); condition != nil {
		o.Keep = condition.Matches
	}
	return o
}

// Pipeline is a Watch with the journal and the sinks of its events. A manager runs it. Run is called
// once; its other methods are safe for concurrent use, except Open and Close.
type Pipeline struct {
	host Host
	o    PipelineOptions

	sinks   []sink.Sink
	memory  map[string]*sink.Direct // outboxes, where there is no journal
	journal *journal.Journal
	ran     bool
	running atomic.Pointer[running]
}

// running is the source of the metrics.
type running struct {
	watch   *Watch
	runners []*sink.Runner
}

// NewPipeline makes the sinks. A sink that cannot be made is an error; a receiver that is away is
// none.
func NewPipeline(h Host, o PipelineOptions) (*Pipeline, error) {
	if o.Log == nil {
		o.Log = h.Logger()
	}
	if o.Deps.Client == nil {
		o.Deps.Client = h.Client()
	}
	if len(o.Sinks) == 0 {
		return nil, errors.New("watching: there is no sink")
	}
	p := &Pipeline{host: h, o: o}
	for _, s := range o.Sinks {
		made, err := sink.New(s.Name, from(h.Client().Server(), s.Options), o.Deps)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.sinks = append(p.sinks, made)
		p.o.WithObjects = p.o.WithObjects || wantsObjects(s.Options)
	}
	return p, nil
}

// Name implements controller.Runnable.
func (p *Pipeline) Name() string { return "watch" }

// Changed reports whether a change has been published. Objects that were there at the start are none.
func (p *Pipeline) Changed() bool {
	r := p.running.Load()
	return r != nil && r.watch.Changed()
}

// Run watches, and sends, until ctx ends. With Options.Once it ends when everything that had changed
// is published, and the sinks have had 30 s to take it. It closes sinks and journal, so that the next
// holder of the lease can open the same file.
func (p *Pipeline) Run(ctx context.Context) error {
	err := p.Open()
	if err == nil {
		err = p.run(ctx)
	}
	p.closeJournal()
	return err
}

// Open opens the cursor, if there is one. Run does so too. A program that does not wait for a lease
// calls Open to report a file that cannot be used at once.
func (p *Pipeline) Open() error {
	if p.o.Cursor == "" || p.journal != nil {
		return nil
	}
	j, damage, err := journal.Open(p.o.Cursor, journal.Options{Log: p.o.Log, States: p.o.CursorStates})
	switch {
	case errors.Is(err, journal.ErrLocked):
		return fmt.Errorf("opening the cursor %s: %w; each watch needs a file of its own", p.o.Cursor, err)
	case err != nil:
		return fmt.Errorf("opening the cursor %s: %w", p.o.Cursor, err)
	case damage != nil: // nothing else tells of what was lost
		p.o.Log.Warn("the cursor was damaged", "what", damage.String())
	}
	p.journal = j
	for _, name := range j.Sinks() {
		known := slices.ContainsFunc(p.o.Sinks, func(s config.Sink) bool { return s.Name == name })
		if n, _, _, err := j.Waiting(name); !known && err == nil && n > 0 {
			p.o.Log.Warn("events wait in the cursor for a sink that is not there now; they are sent when it is there again", "sink", name, "events", n)
		}
	}
	return nil
}

// Close undoes NewPipeline and Open. Call it in the end, with or without Run: if Run could not begin,
// the sinks are still open.
func (p *Pipeline) Close() error {
	var errs []error
	if !p.ran { // the runners close the sinks
		for _, s := range p.sinks {
			errs = append(errs, s.Close())
		}
	}
	p.closeJournal()
	return errors.Join(errs...)
}

func (p *Pipeline) closeJournal() {
	if p.journal == nil {
		return
	}
	if err := p.journal.Close(); err != nil {
		p.o.Log.Warn("closing the cursor", "error", err)
	}
}

func (p *Pipeline) run(ctx context.Context) error {
	runners, err := p.connect()
	if err != nil {
		return err
	}
	w, err := New(p.host, p.o.Options)
	if err != nil {
		return err
	}
	p.ran = true // from here on the runners close the sinks
	p.running.Store(&running{watch: w, runners: runners})

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Sinks go on until the watch has said its last.
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSending()
	var senders sync.WaitGroup
	failed := make(chan error, len(runners))
	for _, r := range runners {
		senders.Go(func() {
			if err := r.Run(sending); err != nil {
				failed <- err
				cancel(err)
			}
		})
	}
	err = w.Run(ctx)
	p.drain(ctx, runners, err)
	stopSending()
	senders.Wait()
	select {
	case err = <-failed: // the cause of the others
	default:
	}
	return err
}
