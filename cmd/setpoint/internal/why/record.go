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

// recordOf finds the record of the manager: at an address, or at the one that it has announced.
func recordOf(ctx context.Context, c *client.Client, config *rest.Config, address string) gather.Record {
	m := announce.Manager{URL: strings.TrimSuffix(address, "/")}
	if address == "" {
		var err error
		if m, err = announce.Find(ctx, c); err != nil {
			return gather.None(err.Error())
		}
	}
	get, err := m.Pages(config)
	if err != nil {
		return gather.None(err.Error())
	}
	return gather.Remote(m.URL, get)
}
