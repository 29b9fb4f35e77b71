// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	in       *window // protobuf
	buffer   []byte  // of events that are larger than a window
	json     *jsonReader

	apiVersion, kind string // of the last event
}

// NewWatchReader reads events from body. limit is the largest event in bytes; 0
// means [DefaultLimit].
func NewWatchReader(body io.Reader, e Encoding, limit int) *WatchReader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	w := &WatchReader{encoding: e, limit: limit}
	if e == Protobuf {
		w.in = newWindow(body)
	} else {
		w.json = newJSONReader(body, limit, jsonWindow)
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
	frame, err := w.frame()
	if err != nil {
		return Event{}, err
	}
	var event Event
	m := message{data: frame}
	for m.next() {
		switch m.number {
		case 1:
			event.Type = eventType(m.text())
		case 2:
			extension := message{data: m.text()}
			for extension.next() {
				if extension.number == 1 {
					var apiVersion, kind []byte
					apiVersion, kind, event.Object, extension.err = openProtobuf(extension.text())
					event.APIVersion, event.Kind = w.typeMeta(apiVersion, kind)
				}
			}
			if m.err == nil {
				m.err = extension.err
			}
		}
	}
	if m.err != nil {
		return Event{}, fmt.Errorf("reading watch event: %w", m.err)
	}
	return event, nil
}

// frame reads the length of an event and the event.
func (w *WatchReader) frame() ([]byte, error) {
	err := w.in.need(frameHeader)
	if err != nil && len(w.in.bytes()) == 0 && errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, fmt.Errorf("reading watch event: %w", unexpected(err))
	}
	size := binary.BigEndian.Uint32(w.in.bytes())
	w.in.from += frameHeader
	if uint64(size) > uint64(w.limit) {
		return nil, fmt.Errorf("reading watch event: %w: %d bytes, limit %d", ErrTooLarge, size, w.limit)
	}
	if size == 0 {
		return nil, nil
	}
	if size > largeWindow {
		w.buffer, err = readFull(w.in, w.buffer, int(size))
		if err != nil {
			return nil, fmt.Errorf("reading watch event: %w", unexpected(err))
		}
		return w.buffer, nil
	}
	if err := w.in.need(int(size)); err != nil {
		return nil, fmt.Errorf("reading watch event: %w", unexpected(err))
	}
	frame := w.in.bytes()[:size]
	w.in.from += int(size)
	return frame, nil
}

// frameHeader is how many bytes the length of an event takes.
const frameHeader = 4

// nextJSON reads a frame: {"type": ..., "object": ...}.
func (w *WatchReader) nextJSON() (Event, error) {
	if _, err := w.json.peek(); err != nil {
		if errors.Is(err, io.EOF) {
			return Event{}, io.EOF
		}
		return Event{}, fmt.Errorf("reading watch event: %w", err)
	}
	frame, err := w.json.value()
	if err != nil {
		return Event{}, fmt.Errorf("reading watch event: %w", err)
	}
	var event Event
	m := walk(&w.json.scan, frame, 0)
	for m.next() {
		switch string(m.name) {
		case "type":
			event.Type = eventType(m.textOrNull())
		case "object":
			from := m.at
			apiVersion, kind := m.typeMeta()
			event.APIVersion, event.Kind = w.typeMeta(apiVersion, kind)
			event.Object = frame[from:m.at]
		default:
			m.skip()
		}
	}
	if m.err != nil {
		return Event{}, fmt.Errorf("reading watch event: %w", m.err)
	}
	if event.Object == nil {
		return Event{}, fmt.Errorf("reading watch event: %w: it has no object", ErrMalformed)
	}
	return event, nil
}

// typeMeta saves two allocations an event: a watch nearly always has events of one kind.
func (w *WatchReader) typeMeta(apiVersion, kind []byte) (string, string) {
	if string(apiVersion) != w.apiVersion {
		w.apiVersion = string(apiVersion)
	}
	if string(kind) != w.kind {
		w.kind = string(kind)
	}
	return w.apiVersion, w.kind
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
