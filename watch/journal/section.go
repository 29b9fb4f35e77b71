// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"cmp"
	"io"
	"iter"
)

// section is where the message of a change is in the file, and its checksum.
type section struct {
	at     int64
	n, sum uint32
}

func sectionOf(message []byte, at int64) section {
	return section{at, uint32(len(message)), checksum(message)}
}

func (s section) compare(other section) int { return cmp.Compare(s.at, other.at) }

// read returns the message.
func (s section) read(r io.ReaderAt) ([]byte, error) {
	b := make([]byte, s.n)
	if _, err := r.ReadAt(b, s.at); err != nil {
		return nil, err
	}
	if checksum(b) != s.sum {
		return nil, errFrame
	}
	return b, nil
}

// readAll yields the messages of sections, which are in the order of the file. A message is
// valid until the next one. The error is errFrame for a message that is damaged; any other
// error is the last that is yielded.
func readAll(r io.ReaderAt, sections []section) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if len(sections) == 0 {
			return
		}
		at, last := sections[0].at, sections[len(sections)-1]
		buffered := bufio.NewReaderSize(io.NewSectionReader(r, at, last.at+int64(last.n)-at), 1<<20)
		var message []byte
		for _, s := range sections {
			_, err := buffered.Discard(int(s.at - at))
			if err == nil {
				message = append(message[:0], make([]byte, s.n)...)
				_, err = io.ReadFull(buffered, message)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if at = s.at + int64(s.n); checksum(message) != s.sum {
				err = errFrame
			}
			if !yield(message, err) {
				return
			}
		}
	}
}
