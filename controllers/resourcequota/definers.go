// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// definers are the views of the kinds whose objects define kinds: a new custom kind is discovered
// at once.
type definers struct {
	open map[schema.GroupResource]view
}

// follow watches the definers that the server has.
func (d *definers) follow(r *resourceQuotas, set discovery.Set) {
	for _, kind := range []schema.GroupResource{definitions, apiServices} {
		s, served := kindsOf(set).served[kind]
		if _, is := d.open[kind]; is || !served {
			continue
		}
		v, err := open(r.watches.host, watched{resource: s.Resource}, func(object.Meta, workqueue.Cause) { r.discovery.Soon() })
		if err != nil {
			r.log.Warn("new kinds are found at the next discovery", "error", err)
			continue
		}
		if d.open == nil {
			d.open = map[schema.GroupResource]view{}
		}
		d.open[kind] = v
	}
}

func (d *definers) end() {
	for _, v := range d.open {
		v.close()
	}
}
