// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/internal/announce"
	"github.com/setpoint-io/setpoint/watch/because"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
)

// causes starts the search for a manager, until ctx ends, and returns what sets the causes of events. The manager is found as
// "setpoint explain" finds it, and is shown the client certificate of the kubeconfig and no token.
func causes(ctx context.Context, c *client.Client, config *rest.Config) func(context.Context, []*event.Event) {
	finder := because.New(because.Options{
		Words: format.Words,
		Find: func(ctx context.Context) (gather.Record, error) {
			m, err := announce.Find(ctx, c)
			if err != nil {
				return nil, err
			}
			get, err := m.Pages(config)
			if err != nil {
				return nil, err
			}
			return gather.Remote(m.URL, get), nil
		},
	})
	go finder.Run(ctx)
	return finder.Fill
}
