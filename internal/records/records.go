// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/internal/announce"
)

// Of returns the joined records of the managers: that of one address, or those of all managers that have announced themselves. A record that
// cannot be read says why.
func Of(ctx context.Context, c *client.Client, config *rest.Config, address string) gather.Record {
	if address != "" {
		return remote(announce.Manager{URL: strings.TrimSuffix(address, "/")}, config)
	}
	all, unread, err := Announced(ctx, c, config)
	if err != nil {
		return gather.None(err.Error())
	}
	for _, why := range unread {
		all = append(all, gather.None(why))
	}
	return gather.Joined(all...)
}

// Announced returns the record of each manager that has announced itself, and sentences about what could not be read. The error
// says that there is none.
func Announced(ctx context.Context, c *client.Client, config *rest.Config) (all []gather.Record, unread []string, err error) {
	managers, unread, err := announce.FindAll(ctx, c)
	for _, m := range managers {
		all = append(all, remote(m, config))
	}
	return all, unread, err
}

// remote is the record of one manager.
func remote(m announce.Manager, config *rest.Config) gather.Record {
	get, err := m.Pages(config)
	if err != nil {
		return gather.None(err.Error())
	}
	return gather.Remote(m.URL, get)
}
