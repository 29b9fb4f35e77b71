// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
)

// Options say how events are written.
type Options struct {
	// Form is Text if empty.
	Form Form
	// Color asks for colours in Text and Diff. The caller knows whether there is a terminal,
	// and what NO_COLOR says.
	Color bool
	// Width is how many columns a line of Text may have; 0 for any number. Names, kinds and
	// authors are never cut: readers search for them.
	Width int
	// Zone is the time zone of Text and Diff. UTC if nil.
	Zone *time.Location
	// Source is the source of CloudEvents: the cluster.
	Source string
	// WithObjects writes whole objects too: old and new in JSON, YAML and CloudEvents, and
	// created and deleted objects in Diff.
	WithObjects bool
}

// Writer writes events. It is not safe for concurrent use.
type Writer struct {
	out     io.Writer
	options Options
	columns columns
	buffer  bytes.Buffer
}

// New returns a Writer to out.
func New(out io.Writer, o Options) *Writer {
	if o.Form == "" {
		o.Form = Text
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	w := &Writer{out: out, options: o}
	if o.Width >= wideTerminal {
		w.columns.name = firstName
	}
	return w
}

// Write writes an event, by one call of the writer below.
func (w *Writer) Write(e *event.Event) error {
	w.buffer.Reset()
	if err := w.form(e); err != nil {
		return err
	}
	if _, err := w.out.Write(w.buffer.Bytes()); err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	const keep = 1 << 20
	if w.buffer.Cap() > keep { // after a large object
		w.buffer = bytes.Buffer{}
	}
	return nil
}

func (w *Writer) form(e *event.Event) error {
	switch w.options.Form {
	case Text:
		w.text(e)
		return nil
	case Diff:
		w.diff(e)
		return nil
	case JSON, YAML, CloudEvents:
		b, err := w.encoded(e)
		w.buffer.Write(b)
		return err
	}
	_, err := ParseForm(string(w.options.Form))
	return err
}

// encoded returns an event in a form for programs.
func (w *Writer) encoded(e *event.Event) ([]byte, error) {
	encode := event.Encode
	if w.options.Form == CloudEvents {
		encode = func(e *event.Event, withObjects bool) ([]byte, error) {
			return event.CloudEvent(e, w.options.Source, withObjects)
		}
	}
	b, err := encode(Summarized(e), w.options.WithObjects)
	if err != nil {
		return nil, err
	}
	if w.options.Form != YAML {
		return append(escapeJSON(b), '\n'), nil
	}
	if b, err = document(b, false); err != nil {
		return nil, fmt.Errorf("writing the event of %s %s as YAML: %w", e.Kind, e.Key, err)
	}
	return append([]byte("---\n"), b...), nil
}
