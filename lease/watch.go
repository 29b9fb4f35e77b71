// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// resource is how servers serve Leases.
var resource = object.Resource{
	Group: coordinationv1.GroupName, Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true,
}

// change is an event of a watch: the Lease as it is now.
type change struct {
	lease   *coordinationv1.Lease
	deleted bool
}

// watch returns the changes of the Lease after a version. The channel is closed when the
// watch ends, for whatever reason; ctx ends it.
func (e *Elector) watch(ctx context.Context, after string) <-chan change {
	changes := make(chan change)
	e.tasks.Go(func() {
		defer close(changes)
		stream, err := e.client.Watch(ctx, resource, client.Selection{
			Namespace: e.config.Key.Namespace,
			Fields:    fields.OneTermEqualSelector("metadata.name", e.config.Key.Name).String(),
		}, client.WatchOptions{ResourceVersion: after})
		if err != nil {
			e.say("it cannot be watched, and is polled instead", err)
			return
		}
		defer func() { _ = stream.Close() }() // whatever was wrong with it, it is over
		for {
			event, err := stream.Next()
			if err != nil {
				return
			}
			switch event.Type {
			case "ADDED", "MODIFIED", "DELETED":
			case "BOOKMARK":
				continue
			default: // an error of the server's: too old a version, say
				return
			}
			l := &coordinationv1.Lease{}
			if err := stream.Encoding.Decode(event.Object, l); err != nil {
				e.say("an event of it cannot be read", err)
				return
			}
			if l.Name != e.config.Key.Name {
				continue
			}
			select {
			case changes <- change{l, event.Type == "DELETED"}:
			case <-ctx.Done():
				return
			}
		}
	})
	return changes
}
