// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
)

var (
	// ErrLocked is why Open gave up: another process has the file.
	ErrLocked = errors.New("another process has the journal open")

	// ErrNewer is why Open refused a file that is in order: a newer program made it.
	ErrNewer = errors.New("the journal is of a newer format than this program reads")

	// ErrFull is what a [FullError] is.
	ErrFull = errors.New("the outbox is full")

	// ErrClosed is what everything answers after Close.
	ErrClosed = errors.New("the journal is closed")

	errEmpty = errors.New("is an empty file")
	errPanic = errors.New("reading it failed")

	// ErrRecord is why a record that is read while the journal is open cannot be used: it
	// was in order when the journal was opened.
	ErrRecord = errors.New("a record of the journal has changed since it was written")
)

// FullError says that a batch was not written, nothing of it, because a sink has no room
// for its events. Wait for Room and commit the same batch again.
type FullError struct {
	Sink    string
	Waiting int   // events that wait for the sink
	Bytes   int64 // and their size
	// Room is closed as soon as anything leaves the sink's outbox. An event that leaves
	// between the commit and the look at Room closes it too.
	Room <-chan struct{}
}

func (e *FullError) Error() string {
	return fmt.Sprintf("sink %q: %v: %d events, %d bytes wait for it", e.Sink, ErrFull, e.Waiting, e.Bytes)
}

// Is makes errors.Is(err, ErrFull) true.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// Damage is what was wrong with a file that was opened. Who opens a journal tells the
// user: what is lost here was not told, and nothing will tell it later.
type Damage struct {
	Path string
	// Aside is where the damaged file lies now; a new one was begun. Empty if the file is
	// still in use, without the records that were damaged.
	Aside  string
	Reason error
	// Objects, Events and Cursors are how many records were taken out of a file that is
	// still in use: states of objects, events not yet sent, versions of selections, and
	// counts of what sinks missed.
	Objects, Events, Cursors, Sinks int
}

// String says what happened and what it means, for a user.
func (d *Damage) String() string {
	switch {
	case d.Aside != "":
		return fmt.Sprintf("the journal %s was damaged (%v). It lies at %s now, and a new one was begun: "+
			"what changed since the last run is not told, and events that waited to be sent are in the old file only", d.Path, d.Reason, d.Aside)
	case errors.Is(d.Reason, errEmpty):
		return fmt.Sprintf("the journal %s %v. It was begun anew: if there should have been anything in it, what changed since is not told", d.Path, d.Reason)
	default:
		return fmt.Sprintf("the journal %s has damaged records (%v), which were taken out: %d states of objects (they are told as created if they are there, "+
			"and not as deleted if they are gone), %d events that were not sent yet, %d cursors (what they were of is listed and compared instead), %d counts of dropped events. The disk may be failing",
			d.Path, d.Reason, d.Objects, d.Events, d.Cursors, d.Sinks)
	}
}
