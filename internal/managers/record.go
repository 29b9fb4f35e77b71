// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"context"
	"fmt"

	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/runs"
)

// Record returns the records of all managers as one. Each question finds the managers that there are at that time.
func (m *Managers) Record() gather.Record { return record{m} }

type record struct{ managers *Managers }

// About implements gather.Record.
func (r record) About(ctx context.Context, o runs.Object) (gather.Found, error) {
	return r.joined(ctx).About(ctx, o)
}

// Newest implements gather.Record.
func (r record) Newest(ctx context.Context, q runs.Query) (gather.Found, error) {
	return r.joined(ctx).Newest(ctx, q)
}

// joined returns the records of the managers of now.
func (r record) joined(ctx context.Context) gather.Record {
	found, unread, err := r.managers.others(ctx)
	var all []gather.Record
	if own := r.managers.options.Own; own != nil {
		all = append(all, gather.WithLoops(gather.Local(own.Runs()), own.KeyStates))
		if o := own.Overview(); o.State != "working" && o.Holder != "" && len(found) == 0 && len(unread) == 0 {
			all = append(all, gather.None(fmt.Sprintf("the manager that leads, %s, has not announced where it serves its pages; this one is %s", o.Holder, o.State)))
		}
	}
	for _, one := range found {
		all = append(all, gather.Remote(one.URL, one.read))
	}
	for _, why := range unread {
		all = append(all, gather.None(why))
	}
	if err != nil {
		all = append(all, gather.None(err.Error()))
	}
	return gather.Joined(all...)
}
