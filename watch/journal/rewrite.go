// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// slack is by how many bytes a file may be larger than twice what is in it.
const slack = 4 << 20

// compactIfDue rewrites the file if most of it is of no use any more.
func (j *Journal) compactIfDue() {
	if j.end < max(j.retryAt, 2*j.state.bytes+slack) {
		return
	}
	if err := j.rewrite(); err != nil {
		j.retryAt = j.end + slack
		j.log.Warn("the journal could not be made smaller; this is tried again when it has grown", "error", err)
	}
}

// rewrite writes what counts to a new file, which takes the place of the old one.
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
	j.file, j.frames, j.state, j.end, j.acked, j.retryAt = f, frames, s, end, nil, 0
	if !j.options.noSync {
		syncDir(filepath.Dir(j.path))
	}
	return nil
}

// frameWriter writes messages in frames of a moderate size.
type frameWriter struct {
	*frames
	w     *bufio.Writer
	at    int64 // of the frame
	frame []byte
}

// frameBytes is from which size on a frameWriter begins another frame.
const frameBytes = 64 << 10

func (w *frameWriter) write(message []byte) (err error) {
	w.frame = addTo(w.frame, message)
	if len(w.frame) > frameBytes {
		err = w.flush()
	}
	return err
}

func (w *frameWriter) flush() error {
	if len(w.frame) == frameHead {
		return nil
	}
	w.seal(w.frame, w.at)
	_, err := w.w.Write(w.frame)
	w.at += int64(len(w.frame))
	w.frame = w.begin(w.frame)
	return err
}

// writeState writes a header and the frames of the state, and returns their size.
func (j *Journal) writeState(f *os.File, frames *frames) (int64, error) {
	w := frameWriter{frames: frames, w: bufio.NewWriterSize(f, 1<<20), at: int64(headerSize), frame: frames.begin(nil)}
	if _, err := w.w.Write(newHeader(j.format(), j.key)); err != nil {
		return 0, err
	}
	for _, name := range sortedNames(j.state.sinks) {
		next := newChange(nil, setNext, name)
		next.number(fieldCount, j.state.sinks[name].next)
		if err := w.write(next); err != nil {
			return 0, err
		}
	}
	for message, err := range readAll(j.file, j.state.sections()) {
		if errors.Is(err, errFrame) {
			j.log.Error("part of the journal is damaged: an event or the state of an object is dropped")
			continue
		}
		if message = j.kept(message); err == nil && message != nil {
			err = w.write(message)
		}
		if err != nil {
			return 0, err
		}
	}
	for _, name := range sortedNames(j.state.selections) {
		if s := j.state.selections[name]; s.known {
			version := newChange(nil, setVersion, name)
			version.text(fieldVersion, s.version)
			if err := w.write(version); err != nil {
				return 0, err
			}
		}
	}
	if err := w.flush(); err != nil {
		return 0, err
	}
	return w.at, w.w.Flush()
}
