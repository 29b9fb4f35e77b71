// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/watch"
	"github.com/setpoint-io/setpoint/watch/config"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// errDone is why a pipeline ended that has done what it was to do.
var errDone = errors.New("everything has been told")

// lastSending is how long sinks may go on when the watch has been stopped. What they do not
// send by then is in the journal for the next start.
const lastSending = 2 * time.Second

// terminalName is what the sink that prints is called in the journal, where the file has no
// sinks.
const terminalName = "terminal"

// pipeline is all that a manager runs here: the watch, the journal that it writes to, and
// the sinks that are sent what is in there. They begin and end in an order of their own, and
// so are one part.
//
// Without a file and a cursor there is no journal, and events go straight to what prints.
// With sinks and without a cursor they wait in memory.
type pipeline struct {
	w       *cli.World
	stdout  io.Writer
	options watch.Options
	config  *config.Config // nil: there is no file
	cursor  string         // empty: no journal
	once    bool
	sinks   []config.Sink

	host *manager.Manager
	log  *slog.Logger
	end  context.CancelCauseFunc // of the manager

	made    []sink.Sink // of sinks
	memory  map[string]*sink.Direct
	journal *journal.Journal

	begun, done atomic.Bool
	running     atomic.Pointer[running]
	runners     []*sink.Runner
	err         error // of Run
}

// running is what can be asked how it fares.
type running struct {
	watch   *watch.Watch
	runners []*sink.Runner
}

// Name implements manager.Runnable.
func (p *pipeline) Name() string { return "watch" }

// changed reports whether something was told of.
func (p *pipeline) changed() bool {
	r := p.running.Load()
	return r != nil && r.watch.Changed()
}

// prepare makes the sinks. What is wrong with them is said before anything is watched.
func (p *pipeline) prepare(ctx context.Context) error {
	out := &reader{out: p.stdout, ctx: ctx, gone: func() {}}
	if len(p.sinks) == 1 { // otherwise there is still somebody to tell
		out.gone = func() { p.end(errDone) }
		go out.awaitGone()
	}
	for _, s := range p.sinks {
		made, err := sink.New(ctx, s.Name, from(p.host.Client().Server(), s.Options), sink.Deps{
			Log: p.log, Secret: secrets(p.w), Client: p.host.Client(), Stdout: out,
			Width: p.w.StdoutWidth, Zone: time.Local,
		})
		if err != nil {
			p.closeSinks()
			return err
		}
		p.made = append(p.made, made)
	}
	return nil
}

// from has CloudEvents say which server they are of, where nobody has named the cluster.
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

// open opens the journal, if there is to be one. What was wrong with it is said: nothing else
// tells of what was lost.
func (p *pipeline) open() error {
	if p.cursor == "" || p.journal != nil {
		return nil
	}
	j, damage, err := journal.Open(p.cursor, journal.Options{Log: p.log})
	switch {
	case errors.Is(err, journal.ErrLocked):
		return fmt.Errorf("opening the cursor %s: %w; each watch needs a file of its own", p.cursor, err)
	case err != nil:
		return fmt.Errorf("opening the cursor %s: %w", p.cursor, err)
	case damage != nil:
		p.log.Warn("the cursor was damaged", "what", damage.String())
	}
	p.journal = j
	p.sayForgotten()
	return nil
}

// sayForgotten names sinks for which events wait and which are there no more.
func (p *pipeline) sayForgotten() {
	known := map[string]bool{}
	for _, s := range p.sinks {
		known[s.Name] = true
	}
	for _, name := range p.journal.Sinks() {
		if n, _, _, err := p.journal.Waiting(name); !known[name] && err == nil && n > 0 {
			p.log.Warn("events wait in the cursor for a sink that is not there now; they are sent when it is there again", "sink", name, "events", n)
		}
	}
}

// close ends what prepare and open began. It is called when nothing runs any more.
func (p *pipeline) close() {
	if !p.begun.Load() { // the runners close the sinks
		p.closeSinks()
	}
	p.closeJournal()
}

// closeJournal can be called twice.
func (p *pipeline) closeJournal() {
	if p.journal == nil {
		return
	}
	if err := p.journal.Close(); err != nil {
		p.log.Warn("closing the cursor", "error", err)
	}
}

func (p *pipeline) closeSinks() {
	for _, s := range p.made {
		_ = s.Close()
	}
}

// Run implements manager.Runnable.
func (p *pipeline) Run(ctx context.Context) error {
	p.begun.Store(true)
	p.err = p.run(ctx)
	// Before the lease is let go of: who has it next opens the same file.
	p.closeJournal()
	if p.err == nil && p.once && ctx.Err() == nil {
		p.done.Store(true)
		p.end(errDone)
	}
	return p.err
}

func (p *pipeline) run(ctx context.Context) error {
	if err := p.open(); err != nil {
		return err
	}
	if err := p.connect(); err != nil {
		return err
	}
	w, err := watch.New(p.host, p.options)
	if err != nil {
		return err
	}
	p.running.Store(&running{watch: w, runners: p.runners})

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Sinks go on until the watch has said its last.
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSending()
	var senders sync.WaitGroup
	var failed atomic.Pointer[error]
	for _, r := range p.runners {
		senders.Go(func() {
			if err := r.Run(sending); err != nil {
				failed.CompareAndSwap(nil, &err)
				cancel(err)
			}
		})
	}
	err = w.Run(ctx)
	p.drain(ctx, err)
	stopSending()
	senders.Wait()
	if first := failed.Load(); first != nil {
		return *first
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, errUnread) {
		return nil // nobody reads any more
	}
	return err
}

// drain waits until the sinks have sent what they can.
func (p *pipeline) drain(ctx context.Context, failure error) {
	if len(p.runners) == 0 {
		return
	}
	patience := lastSending
	if p.once && failure == nil && ctx.Err() == nil {
		patience = onceWaits
	}
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if ctx.Err() == nil { // a signal shortens it
		shorten := context.AfterFunc(ctx, func() { time.AfterFunc(lastSending, cancel) })
		defer shorten()
	}
	var all sync.WaitGroup
	for _, r := range p.runners {
		all.Go(func() {
			if r.Drained(waiting) == nil {
				return
			}
			if s := r.Status(); s.Waiting > 0 {
				p.logLeft(s)
			}
		})
	}
	all.Wait()
}

// logLeft says what becomes of events that a sink was not sent.
func (p *pipeline) logLeft(s sink.Status) {
	log := p.log.With("sink", s.Name, "events", s.Waiting, "lastError", s.LastError)
	if p.journal == nil {
		log.Warn("a sink did not take all events in time, and they are lost: there is no cursor")
		return
	}
	log.Warn("a sink did not take all events in time; they are sent after the next start")
}

// logRefused says which events were not printed.
func (p *pipeline) logRefused(events []*event.Event, refused []sink.Refusal) {
	for _, r := range refused {
		p.log.Warn("an event cannot be printed", "event", events[r.Index].ID, "object", events[r.Index].Key.String(), "error", r.Err)
	}
}
