// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/internal/records"
	"github.com/setpoint-io/setpoint/watch/because"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
)

// causes starts the search for managers, until ctx ends, and returns what sets the causes of events. The managers are found as
// "setpoint explain" finds them, and are shown the client certificate of the kubeconfig and no token. They have to answer within a time.
func causes(ctx context.Context, c *client.Client, config *rest.Config, within time.Duration) func(context.Context, []*event.Event) {
	finder := because.New(because.Options{
		Words:  format.Words,
		Within: within,
		Find: func(ctx context.Context) ([]gather.Record, error) {
			all, _, err := records.Announced(ctx, c, config)
			return all, err
		},
	})
	go finder.Run(ctx)
	return finder.Fill
}
