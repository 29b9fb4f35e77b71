// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
)

// As returns a host for a controller that has credentials of its own: it reads and writes,
// and records its events, with those of config. The rest is the manager's: informers, which
// are shared and read with the manager's credentials, the log, and the lease, without which
// nothing is written. It must be called before Run.
func (m *Manager) As(config *rest.Config) (controller.Host, error) {
	c, err := m.newClient(config)
	if err != nil {
		return nil, err
	}
	return &actor{Manager: m, client: c}, nil
}

// actor is a manager with another client.
type actor struct {
	*Manager
	client *client.Client
}

// Client implements controller.Host.
func (a *actor) Client() *client.Client { return a.client }

// Recorder implements controller.Host.
func (a *actor) Recorder(name string) *events.Recorder { return a.recorder(a.client, name) }
