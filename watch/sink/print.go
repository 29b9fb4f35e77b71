// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
)

// chunk is how many bytes are written at once, about.
const chunk = 1 << 20

// printer writes events in one of the forms. A chunk of events is one Write, so that lines
// of two sinks on one terminal do not mix.
type printer struct {
	w     io.Writer
	limit int // the largest Write that w takes, 0 if there is none

	// flushed, if it is set, is called after each Write. The events that it wrote are done if flushed does not fail.
	flushed func() error

	form    func(*event.Event) error // writes to one
	one     bytes.Buffer             // one event
	pending bytes.Buffer             // the events before it
	torn    bool                     // w does not end with a line break
}

func newPrinter(w io.Writer, limit int, o format.Options) *printer {
	p := &printer{w: w, limit: limit}
	p.form = format.New(&p.one, o).Write
	return p
}

// Send writes events. After a Write that failed, the events before it are done.
func (p *printer) Send(ctx context.Context, events []*event.Event) Result {
	var r Result
	held := 0 // events that are in pending
	flush := func() bool {
		if r.Err = p.flush(); r.Err != nil {
			return false
		}
		r.Done += held
		held = 0
		return true
	}
	for _, e := range events {
		p.one.Reset()
		err := p.form(e)
		if err == nil && p.limit > 0 && p.one.Len() > p.limit {
			err = fmt.Errorf("the event is of %d bytes, and the file is rotated at %d: set maxSizeMB higher", p.one.Len(), p.limit)
		}
		if p.pending.Len() > 0 && (err != nil || p.pending.Len()+p.one.Len() > min(chunk, cmp.Or(p.limit, chunk))) {
			if !flush() {
				return r
			}
			if ctx.Err() != nil {
				r.Err = ctx.Err()
				return r
			}
		}
		if err != nil {
			r.refuse(err)
			continue
		}
		p.pending.Write(p.one.Bytes())
		held++
	}
	flush()
	return r
}

// flush writes the pending events. None is pending after it, whether it was written or not.
func (p *printer) flush() error {
	defer p.pending.Reset()
	if p.pending.Len() == 0 {
		return nil
	}
	data := p.pending.Bytes()
	if p.torn {
		data = append([]byte("\n"), data...)
	}
	n, err := p.w.Write(data)
	switch {
	case err == nil && n < len(data):
		err = io.ErrShortWrite
	case err == nil:
		p.torn = false
		if p.flushed != nil {
			return p.flushed()
		}
		return nil
	}
	if n > 0 {
		p.torn = data[n-1] != '\n'
	}
	return fmt.Errorf("writing events: %w", err)
}
