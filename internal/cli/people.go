// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// gatherFor is how long a warning waits for others like it: ten informers that lack one right have the
// same trouble within moments.
const gatherFor = 500 * time.Millisecond

// people is a slog.Handler whose lines are for people at a terminal: the local time, a mark, and what
// happened in the words of the log. Warnings that differ only in what they are about are one line.
type people struct {
	*board

	level slog.Level
	attrs []slog.Attr // of With
	group string      // of WithGroup, with a dot behind each
}

// board is what the loggers of one handler share. It is safe for concurrent use.
type board struct {
	out   io.Writer
	zone  *time.Location
	clear string // written before each line

	mu      sync.Mutex
	waiting []*notice // in the order of the first of each
	timer   *time.Timer
}

// newPeople returns a handler that writes to out. On a live terminal it first clears the line that it
// writes to, as there may be an unfinished one.
func newPeople(out io.Writer, level slog.Level, zone *time.Location, live bool) *people {
	b := &board{out: out, zone: zone}
	if live {
		b.clear = "\r\x1b[K"
	}
	return &people{board: b, level: level}
}

// Enabled implements slog.Handler.
func (p *people) Enabled(_ context.Context, level slog.Level) bool { return level >= p.level }

// Handle implements slog.Handler.
func (p *people) Handle(_ context.Context, r slog.Record) error {
	n := &notice{at: r.Time, level: r.Level, message: r.Message}
	for _, a := range p.attrs {
		n.add("", a)
	}
	r.Attrs(func(a slog.Attr) bool {
		n.add(p.group, a)
		return true
	})
	return p.put(n)
}

// WithAttrs implements slog.Handler.
func (p *people) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *p
	with.attrs = slices.Clone(p.attrs)
	for _, a := range attrs {
		a.Key = p.group + a.Key
		with.attrs = append(with.attrs, a)
	}
	return &with
}

// WithGroup implements slog.Handler.
func (p *people) WithGroup(name string) slog.Handler {
	if name == "" {
		return p
	}
	in := *p
	in.group += name + "."
	return &in
}

// put writes a notice, or keeps it for a moment if there may be others like it.
func (b *board) put(n *notice) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case n.level < slog.LevelWarn: // what waits stays together: each line has its own time
		return b.write(n)
	case n.about() == nil:
		return b.writeAll(n)
	}
	for _, w := range b.waiting {
		if w.join(n) {
			return nil
		}
	}
	b.waiting = append(b.waiting, n)
	if b.timer == nil {
		b.timer = time.AfterFunc(gatherFor, b.flush)
	}
	return nil
}

// flush writes what waits.
func (b *board) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.writeAll() // a log has nowhere to say that it cannot be written
}

// writeAll writes what waits, and then further notices. It is called with mu held.
func (b *board) writeAll(more ...*notice) error {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	all := append(b.waiting, more...)
	b.waiting = nil
	for _, n := range all {
		if err := b.write(n); err != nil {
			return err
		}
	}
	return nil
}

// write writes a notice. It is called with mu held.
func (b *board) write(n *notice) error {
	_, err := io.WriteString(b.out, b.clear+n.line(b.zone)+"\n")
	return err
}
