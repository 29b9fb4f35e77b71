// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// load reads the frames of a file of a size, and returns what they add up to and where the last
// one ends. Damaged says what is wrong before that end. What is behind it is a commit that was
// cut off: it was never said to be on the disk, or what it held is told again.
func load(f *os.File, frames *frames, size int64) (s *state, end int64, damaged, err error) {
	s = newState()
	at := int64(headerSize)
	end = at
	var bad error // why the bytes from end to at are no frames
	r := bufio.NewReaderSize(io.NewSectionReader(f, at, size-at), 1<<20)
	for at < size {
		changes, length, err := frames.read(r, at, size)
		switch {
		case err == nil:
			if damaged == nil {
				damaged = bad
			}
			for i := range changes {
				s.apply(&changes[i])
			}
			at += length
			end, bad = at, nil
		case errors.Is(err, errFrame), errors.Is(err, errMessage):
			if bad == nil {
				bad = fmt.Errorf("at byte %d: %w", at, err)
			}
			if errors.Is(err, errMessage) {
				damaged = bad // it is whole, and so was not cut off
			}
			if at, err = frames.next(f, at+1, size); err != nil {
				return nil, 0, nil, err
			}
			r.Reset(io.NewSectionReader(f, at, size-at))
		default:
			return nil, 0, nil, fmt.Errorf("reading it at byte %d: %w", at, err)
		}
	}
	for _, q := range s.sinks {
		q.written = q.next
	}
	return s, end, damaged, nil
}

// settle makes sure that the file ends where its frames do, and that the disk has them.
func (j *Journal) settle() error {
	if err := j.file.Truncate(j.end); err != nil {
		return err
	}
	return j.sync(j.file)
}

func (j *Journal) sync(f *os.File) error {
	if j.options.NoSync {
		return nil
	}
	return f.Sync()
}

var errTooLarge = errors.New("a batch of 4 GiB and more is not written; make it smaller")

// appendFrame writes the frame that was made. If that fails, the state is read from the file
// again, because it is ahead of it.
func (j *Journal) appendFrame() error {
	err := errTooLarge
	if int64(len(j.frame)) <= math.MaxUint32 { // the length of a frame has 32 bits
		j.frames.seal(j.frame, j.end)
		_, err = j.file.WriteAt(j.frame, j.end)
	}
	if err == nil {
		err = j.sync(j.file)
	}
	if err == nil {
		j.end += int64(len(j.frame))
		if cap(j.frame) > 1<<20 {
			j.frame = nil
		}
		return nil
	}
	err = j.explain("writing to it", err)
	j.mu.Lock()
	j.broken = err
	j.mu.Unlock()
	if failed := j.restore(); failed != nil {
		return failed
	}
	return err
}

// restore makes the state again that is on the disk, after a write that failed. It returns
// ErrClosed if the journal is closed.
func (j *Journal) restore() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return ErrClosed
	}
	if j.broken == nil {
		return nil
	}
	s, end, damaged, err := load(j.file, j.frames, j.end)
	if err == nil && (damaged != nil || end != j.end) {
		err = fmt.Errorf("it is damaged (%w): start anew, and what can be read is kept", errors.Join(damaged, errFrame))
	}
	if err == nil {
		err = j.settle()
	}
	if err != nil {
		return fmt.Errorf("the journal %s could not be read again (%w) after a failure: %w", j.path, err, j.broken)
	}
	j.state, j.broken = s, nil
	return nil
}

// slack is by how much a file may be larger than twice what is in it.
const slack = 4 << 20

// compactIfDue rewrites the file if most of it is of no use any more.
func (j *Journal) compactIfDue() {
	if j.end < j.compactAt {
		return
	}
	needed := j.state.size()
	if j.compactAt = 2*needed + slack; j.end < j.compactAt {
		return
	}
	j.compactAt = j.end + slack // if it fails
	if err := j.rewrite(); err != nil {
		j.log.Warn("the journal could not be made smaller; this is tried again when it has grown", "error", err)
	}
}

// rewrite writes the state to a new file, with the events that are in the old one, and puts it
// in the place of that.
func (j *Journal) rewrite() (err error) {
	path := j.path + ".new"
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(path))
		}
	}()
	if err := lockFile(f, time.Now()); err != nil {
		return err
	}
	frames := framesOf(j.key)
	size, err := j.writeState(f, frames)
	if err == nil {
		err = j.sync(f)
	}
	if err != nil {
		return err
	}
	s, end, damaged, err := load(f, frames, size)
	if err == nil && (damaged != nil || end != size) {
		err = fmt.Errorf("%s cannot be read as it was written: %w", path, errors.Join(damaged, errFrame))
	}
	if err != nil {
		return err
	}
	if err := os.Rename(path, j.path); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.file.Close() // it has no name any more
	j.file, j.frames, j.state, j.end = f, frames, s, end
	j.compactAt = 2*end + slack
	if !j.options.NoSync {
		syncDir(filepath.Dir(j.path))
	}
	return nil
}

// writeState writes a header and the frames of the state, and returns their size.
func (j *Journal) writeState(f *os.File, frames *frames) (int64, error) {
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := w.Write(newHeader(j.key)); err != nil {
		return 0, err
	}
	at := int64(headerSize)
	frame := frames.begin(nil)
	flush := func(least int) (err error) {
		if len(frame) > least {
			frames.seal(frame, at)
			_, err = w.Write(frame)
			at += int64(len(frame))
			frame = frames.begin(frame)
		}
		return err
	}
	add := func(c *change) error {
		frame = frames.add(frame, at, c)
		return flush(64 << 10)
	}
	for c := range j.state.changes() {
		if err := add(c); err != nil {
			return 0, err
		}
	}
	for name, q := range j.state.sinks {
		for _, e := range q.entries {
			c, err := e.change(j.file)
			if errors.Is(err, errFrame) || errors.Is(err, errMessage) {
				j.log.Error("an event in the journal is damaged; it is dropped", "sink", name, "seq", e.seq)
				c, err = change{verb: countDropped, name: name, count: 1}, nil
			}
			if err == nil {
				err = add(&c)
			}
			if err != nil {
				return 0, err
			}
		}
	}
	if err := flush(frameHead); err != nil {
		return 0, err
	}
	return at, w.Flush()
}

// explain says what was done to which file, and what can be done about an error.
func (j *Journal) explain(doing string, err error) error {
	advice := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		advice = ": make room, it is then tried again"
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
