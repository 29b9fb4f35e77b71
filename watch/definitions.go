// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"time"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/pause"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// apiServices are the servers that the API server passes requests on to, itself included: each
// group and version of custom kinds has one.
var apiServices = object.Resource{Group: "apiregistration.k8s.io", Version: "v1", Plural: "apiservices", Kind: "APIService"}

const (
	// definitionsTurn is how long the server keeps a watch of definitions open.
	definitionsTurn = 10 * time.Minute
	// definitionsPause is the pause before the next watch. An account that may not read
	// definitions is refused as often; its new kinds are found all the same, by discoverEvery.
	definitionsPause = time.Minute
)

// followDefinitions has the next discovery begin when a kind is defined, changed or gone, until ctx
// ends. It returns at once.
func (w *Watch) followDefinitions(ctx context.Context) {
	for _, r := range []object.Resource{definitions, apiServices} {
		w.tasks.Go(func() {
			for ctx.Err() == nil {
				err := w.watchDefinitions(ctx, r)
				if err == nil {
					continue
				}
				w.log.Debug("definitions of kinds cannot be watched; new kinds are found a little later", "kind", r.Plural, "error", err)
				pause.For(ctx, definitionsPause)
			}
		})
	}
}

// watchDefinitions signals each change of a definition until the server ends the watch. Of the
// objects only the metadata is read: schemas are large.
func (w *Watch) watchDefinitions(ctx context.Context, r object.Resource) error {
	selection := client.Selection{MetadataOnly: true, WithoutManagedFields: true}
	list, err := w.host.Client().List(ctx, r, selection, client.ListOptions{PageSize: 1}, func(wire.Encoding, []byte) error { return nil })
	if err != nil {
		return err
	}
	stream, err := w.host.Client().Watch(ctx, r, selection, client.WatchOptions{ResourceVersion: list.ResourceVersion, Timeout: definitionsTurn})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	w.define() // what came since the last discovery
	for began := time.Now(); ; {
		e, err := stream.Next()
		switch {
		case err != nil && time.Since(began) < definitionsPause:
			return err // a server that ends watches at once is not to be asked in a loop
		case err != nil:
			return nil // the next watch begins
		case e.Type != wire.Bookmark:
			w.define()
		}
	}
}

// define asks for a discovery soon.
func (w *Watch) define() {
	select {
	case w.defined <- struct{}{}:
	default:
	}
}
