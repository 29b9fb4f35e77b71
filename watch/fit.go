// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/json"
	"slices"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
)

const (
	// most is how many bytes an event may have, with its ID.
	most = journal.MaxEvent - 1024
	// long is how many bytes a value may have in an event that is too large.
	long = 1024
)

// fit encodes an event with as much of it as the journal accepts: an object may have
// 1.5 MiB at a server, is in an event up to four times, and six bytes of JSON may stand for
// one of it. The summary says what is left out.
//
// If all of it fits, and no objects are written, fit keeps the event for the sinks (Options.recent).
func fit(e *event.Event, o *Options) ([]byte, error) {
	if words := o.Words; words != nil && !o.WithObjects && len(e.Fields) == 0 && e.Verb != event.Updated && e.Verb != event.Settled {
		described := *e
		described.Summary = words(e)
		e = &described
	}
	data, err := event.Encode(e, o.WithObjects)
	if err != nil {
		return nil, err
	}
	if len(data) <= most {
		if !o.WithObjects {
			o.recent.Keep(data, event.Decoded(e))
		}
		return data, nil
	}
	o.Log.Warn("an event is too large for the journal; parts of it are left out", "kind", e.Kind.String(), "object", e.Key.String(), "bytes", len(data), "most", most)
	less := *e
	less.Summary = "too large for its objects"
	if data, err = event.Encode(&less, false); err != nil || len(data) <= most {
		return data, err
	}
	less.Summary = "too large for all of its fields"
	less.Fields = slices.Clone(e.Fields)
	for i := range less.Fields {
		f := &less.Fields[i]
		f.From, f.To = shortened(f.From), shortened(f.To)
	}
	if data, err = event.Encode(&less, false); err != nil || len(data) <= most {
		return data, err
	}
	less.Fields = nil
	return event.Encode(&less, false)
}

// shortened returns a value, or a text in its place if it is long.
func shortened(v any) any {
	if data, err := json.Marshal(v); err == nil && len(data) <= long {
		return v
	}
	return "(too large)"
}
