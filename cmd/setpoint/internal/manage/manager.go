// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"context"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/manager"
)

func names(of []*controllers.Descriptor) []string {
	var all []string
	for _, d := range of {
		all = append(all, d.Name)
	}
	return all
}

// New returns a manager of the chosen controllers, and those that it runs, see newManager.
func New(config *rest.Config, chosen []*controllers.Descriptor, cluster controllers.Cluster, log *slog.Logger, options ...manager.Option) (*manager.Manager, []*controllers.Descriptor, error) {
	return newManager(config, chosen, cluster, together, log, options...)
}

// newManager returns a manager of the chosen controllers, and those that it runs: what lacks
// something that it cannot work without is left out, and so is what a feature gate or a flag of
// its own turns off.
func newManager(config *rest.Config, chosen []*controllers.Descriptor, cluster controllers.Cluster, hosts hosting, log *slog.Logger, more ...manager.Option) (*manager.Manager, []*controllers.Descriptor, error) {
	aliases := map[string]string{}
	for _, d := range chosen {
		aliases[d.Alias] = d.Name
	}
	m, err := manager.New(config, append(more, manager.Log(log), manager.ClientOptions(client.QuietConnections()), manager.Aliases(aliases))...)
	if err != nil {
		return nil, nil, err
	}
	var run []*controllers.Descriptor
	for _, d := range running(chosen) {
		if gate, byDefault := d.Closed(); gate != "" {
			level := slog.LevelInfo
			if byDefault {
				level = slog.LevelDebug // as in a cluster that was never configured
			}
			log.Log(context.Background(), level, "a controller is not started: its feature gate is off", "controller", d.Name, "gate", gate)
			continue
		}
		d.Learn(cluster)
		if lacks := d.Lacks(); lacks != "" {
			log.Info("a controller is not started", "controller", d.Name, "lacks", lacks)
			continue
		}
		host, err := hosts(m, d)
		if err != nil {
			return nil, nil, err
		}
		c, err := d.New(host)
		if err != nil {
			return nil, nil, err
		}
		if err := m.Add(c); err != nil {
			return nil, nil, err
		}
		run = append(run, d)
	}
	return m, run, nil
}
