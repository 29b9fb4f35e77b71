// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"io"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
)

// formOptions say how events are written.
type formOptions struct {
	form, source   string
	color, objects bool
	width          int
	zone           *time.Location
}

// newForm returns what writes events to w.
func newForm(w io.Writer, o formOptions) (func(*event.Event) error, error) {
	form, err := format.ParseForm(o.form)
	if err != nil {
		return nil, within("form", err)
	}
	return format.New(w, format.Options{
		Form: form, Color: o.color, Width: o.width, Zone: o.zone, Source: o.source, WithObjects: o.objects,
	}).Write, nil
}
