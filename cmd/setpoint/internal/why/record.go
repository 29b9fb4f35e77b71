// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/internal/announce"
)

// recordOf finds the records of the managers: that of one address, or those of all managers that have announced themselves.
func recordOf(ctx context.Context, c *client.Client, config *rest.Config, address string) gather.Record {
	if address != "" {
		return remote(announce.Manager{URL: strings.TrimSuffix(address, "/")}, config)
	}
	managers, unread, err := announce.FindAll(ctx, c)
	if err != nil {
		return gather.None(err.Error())
	}
	var all []gather.Record
	for _, m := range managers {
		all = append(all, remote(m, config))
	}
	for _, why := range unread {
		all = append(all, gather.None(why))
	}
	return gather.Joined(all...)
}

// remote is the record of one manager.
func remote(m announce.Manager, config *rest.Config) gather.Record {
	get, err := m.Pages(config)
	if err != nil {
		return gather.None(err.Error())
	}
	return gather.Remote(m.URL, get)
}
