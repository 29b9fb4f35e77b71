// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// load reads the frames of a file of a size, and returns their state and the end of the last one.
// damaged is what is wrong before that end. The bytes after the end are a commit that was cut off:
// Commit has not returned for it, or its events are told again.
func load(f *os.File, frames *frames, size int64) (s *state, end int64, damaged, err error) {
	s = newState()
	at := int64(headerSize)
	end = at
	var bad error // why the bytes from end to at are no frames
	r := bufio.NewReaderSize(io.NewSectionReader(f, at, size-at), 1<<20)
	for at < size {
		body, err := frames.read(r, at, size)
		if err == nil {
			err = s.applyFrame(body, at+frameHead, nil)
		}
		switch {
		case err == nil:
			if damaged == nil {
				damaged = bad
			}
			at += frameHead + int64(len(body))
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
	return s, end, damaged, nil
}

// applyFrame makes the changes of a frame, whose body is at an offset: all of them, or none if
// one is no change. It calls applied, if that is not nil, with each change.
func (s *state) applyFrame(body []byte, at int64, applied func(*change)) error {
	var c change
	for _, message := range messages(body) {
		if err := c.decode(message); err != nil {
			return err
		}
	}
	for i, message := range messages(body) {
		if err := c.decode(message); err != nil {
			return err
		}
		s.apply(&c, sectionOf(message, at+int64(i)))
		if applied != nil {
			applied(&c)
		}
	}
	return nil
}

// truncate makes sure that the file ends where its frames do, and that the disk has them.
func (j *Journal) truncate() error {
	if err := j.file.Truncate(j.end); err != nil {
		return err
	}
	return j.sync(j.file)
}

func (j *Journal) sync(f *os.File) error {
	if j.options.noSync {
		return nil
	}
	return f.Sync()
}
