// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// The types of watch events. Source: k8s.io/apimachinery/pkg/watch.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Bookmark = "BOOKMARK"
	Error    = "ERROR"
)

// Event is one event of a watch. Object is without envelope and valid until the
// next read.
type Event struct {
	Type       string
	APIVersion string
	Kind       string
	Object     []byte
}

// WatchReader reads the events of a watch body. It is used by one goroutine.
type WatchReader struct {
	encoding Encoding
	limit    int
	in       *bufio.Reader // protobuf
	buffer   []byte
	json     *jsonReader
}

// NewWatchReader reads events from body. limit is the largest event in bytes; 0
// means [DefaultLimit].
func NewWatchReader(body io.Reader, e Encoding, limit int) *WatchReader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	w := &WatchReader{encoding: e, limit: limit}
	if e == Protobuf {
		w.in = bufio.NewReaderSize(body, 32<<10)
	} else {
		w.json = newJSONReader(body, limit)
	}
	return w
}

// Next reads one event. io.EOF means that the server ended the watch between
// two events, io.ErrUnexpectedEOF that it was cut within one.
func (w *WatchReader) Next() (Event, error) {
	if w.encoding == Protobuf {
		return w.nextProtobuf()
	}
	return w.nextJSON()
}

// nextProtobuf reads a frame: its length in four bytes, big-endian, and a
// metav1.WatchEvent: 1 type, 2 object (runtime.RawExtension: 1 raw).
// Source of the framing: k8s.io/apimachinery/pkg/util/framer.
func (w *WatchReader) nextProtobuf() (Event, error) {
	var header [4]byte
	if _, err := io.ReadFull(w.in, header[:]); err != nil {
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return Event{}, io.EOF
		}
		return Event{}, fmt.Errorf("reading watch event: %w", err)
	}
	size := binary.BigEndian.Uint32(header[:])
	if uint64(size) > uint64(w.limit) {
		return Event{}, fmt.Errorf("reading watch event: %w: %d bytes, limit %d", ErrTooLarge, size, w.limit)
	}
	frame, err := readFull(w.in, w.buffer, int(size))
	w.buffer = frame
	if err != nil {
		return Event{}, fmt.Errorf("reading watch event: %w", unexpected(err))
	}
	var event Event
	err = fields(frame, func(number protowire.Number, value []byte) error {
		switch number {
		case 1:
			event.Type = eventType(value)
		case 2:
			return fields(value, func(number protowire.Number, raw []byte) (err error) {
				if number == 1 {
					event.APIVersion, event.Kind, event.Object, err = openProtobuf(raw)
				}
				return err
			})
		}
		return nil
	})
	if err != nil {
		return Event{}, fmt.Errorf("reading watch event: %w", err)
	}
	return event, nil
}

func (w *WatchReader) nextJSON() (Event, error) {
	var frame struct {
		Type   string
		Object rawJSON
	}
	frame.Object = rawJSON(w.buffer[:0])
	w.json.refill()
	if err := w.json.in.Decode(&frame); err != nil {
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return Event{}, io.EOF
		}
		return Event{}, fmt.Errorf("reading watch event: %w", malformed(err))
	}
	w.buffer = frame.Object
	apiVersion, kind, raw, err := JSON.Open(frame.Object)
	if err != nil {
		return Event{}, fmt.Errorf("reading watch event: %w", err)
	}
	return Event{Type: frame.Type, APIVersion: apiVersion, Kind: kind, Object: raw}, nil
}

// rawJSON is json.RawMessage that keeps its memory between events.
type rawJSON []byte

func (r *rawJSON) UnmarshalJSON(b []byte) error {
	*r = append((*r)[:0], b...)
	return nil
}

// eventType saves an allocation an event.
func eventType(b []byte) string {
	switch string(b) {
	case Added:
		return Added
	case Modified:
		return Modified
	case Deleted:
		return Deleted
	case Bookmark:
		return Bookmark
	case Error:
		return Error
	}
	return string(b)
}
