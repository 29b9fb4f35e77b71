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
	// Color asks for colours in Text and Diff. Who knows whether there is a terminal, and
	// what NO_COLOR says, decides.
	Color bool
	// Width is how many columns a line of Text may have; 0 for any number. Names, kinds and
	// authors are never cut: they are what is looked for.
	Width int
	// Zone is in which times are shown in Text and Diff. UTC if nil.
	Zone *time.Location
	// Source says in CloudEvents which cluster it is.
	Source string
	// WithObjects writes whole objects too: in JSON, YAML and CloudEvents as old and new, in
	// Diff what was created or deleted.
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
	if w.buffer.Cap() > keep { // one large object is not paid for until the end
		w.buffer = bytes.Buffer{}
	}
	return nil
}

func (w *Writer) form(e *event.Event) error {
	switch w.options.Form {
	case Text:
		w.text(e)
	case Diff:
		w.diff(e)
	case JSON:
		b, err := event.Encode(e, w.options.WithObjects)
		if err != nil {
			return err
		}
		w.buffer.Write(escapeJSON(b))
		w.buffer.WriteByte('\n')
	case CloudEvents:
		b, err := event.CloudEvent(e, w.options.Source, w.options.WithObjects)
		if err != nil {
			return err
		}
		w.buffer.Write(escapeJSON(b))
		w.buffer.WriteByte('\n')
	case YAML:
		b, err := event.Encode(e, w.options.WithObjects)
		if err != nil {
			return err
		}
		doc, err := document(b, false)
		if err != nil {
			return fmt.Errorf("writing the event of %s %s as YAML: %w", e.Kind, e.Key, err)
		}
		w.buffer.WriteString("---\n")
		w.buffer.Write(doc)
	default:
		_, err := ParseForm(string(w.options.Form))
		return err
	}
	return nil
}
