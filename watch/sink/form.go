// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"io"

	"github.com/setpoint-io/setpoint/watch/event"
)

// formOptions say how events are written.
type formOptions struct {
	form, source   string
	color, objects bool
}

// newForm returns what writes events to w.
func newForm(w io.Writer, o formOptions) (func(*event.Event) error, error) {
	line := func(encode func(*event.Event) ([]byte, error)) func(*event.Event) error {
		return func(e *event.Event) error {
			data, err := encode(e)
			if err == nil {
				_, err = w.Write(append(data, '\n'))
			}
			return err
		}
	}
	switch o.form {
	case "json":
		return line(func(e *event.Event) ([]byte, error) { return event.Encode(e, o.objects) }), nil
	case "cloudevents":
		return line(func(e *event.Event) ([]byte, error) { return event.CloudEvent(e, o.source, o.objects) }), nil
	case "text":
		return line(func(e *event.Event) ([]byte, error) { return []byte(words(e)), nil }), nil
	}
	return nil, wrong("form", "%q cannot be written yet; use text, json or cloudevents", o.form)
}
