// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

var (
	// ErrLocked is why Open gave up: another process has the file.
	ErrLocked = errors.New("another process has the journal open")

	// ErrNewer is why Open refused a file that is in order: a newer program made it.
	ErrNewer = errors.New("the journal is of a newer format than this program reads")

	// ErrOlder is why Open refused a file of format 1, a database of bbolt.
	ErrOlder = errors.New("the journal is of format 1, which this program does not read any more")

	// ErrFull is the error that a [FullError] is.
	ErrFull = errors.New("the outbox is full")

	// ErrClosed is the error of every method after Close.
	ErrClosed = errors.New("the journal is closed")

	errEmpty = errors.New("is an empty file")
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

// Damage is what was wrong with a file that was opened. The caller of Open tells the user: what
// is lost here was not told, and nothing will tell it later.
type Damage struct {
	Path string
	// Aside is where the damaged file is now. It is empty if the file was empty.
	Aside  string
	Reason error
	// Kept says that what could be read is in a new file. Events is how many events that were
	// not sent yet are known to be lost; there may be more.
	Kept   bool
	Events uint64
}

// String says what happened and what it means, for a user.
func (d *Damage) String() string {
	switch {
	case d.Aside == "":
		return fmt.Sprintf("the journal %s %v. It was begun anew: if there should have been anything in it, what changed since is not told", d.Path, d.Reason)
	case d.Kept:
		return fmt.Sprintf("the journal %s was damaged (%v). It is at %s now, and what could be read of it is kept: everything that is watched is listed and compared, "+
			"an object whose state is lost is reported as created if it exists, and its deletion is not reported if it is gone; at least %d events that were not sent yet are lost. The disk may be failing",
			d.Path, d.Reason, d.Aside, d.Events)
	default:
		return fmt.Sprintf("the journal %s was damaged (%v). It is at %s now, and a new one was begun: "+
			"what changed since the last run is not told, and events that waited to be sent are in the old file only", d.Path, d.Reason, d.Aside)
	}
}

// explain says what was done to which file, and what can be done about an error.
func (j *Journal) explain(doing string, err error) error {
	advice := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		advice = ": make room, it is then tried again"
	case errors.Is(err, errFrame), errors.Is(err, errMessage):
		advice = ": it is damaged; start the watch again, and what can be read is kept"
	case errors.Is(err, syscall.EIO):
		advice = ": the disk may be failing"
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		advice = ": it and its directory must be writable"
	case errors.Is(err, ErrNewer):
		advice = ": use the newer program, or another file"
	case errors.Is(err, ErrOlder):
		advice = ": use another file, or move this one away. What changed since is not told, and events that wait in it can be sent by the older program only"
	}
	return fmt.Errorf("the journal %s: %s: %w%s", j.path, doing, err, advice)
}
