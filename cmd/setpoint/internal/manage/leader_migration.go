// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// leaderMigration has the controllers that belong to another controller manager, while a
// cluster moves controllers from one to the other. Source:
// k8s.io/controller-manager/pkg/leadermigration.
type leaderMigration struct {
	on   bool
	file string
}

func (l *leaderMigration) flags(flags *pflag.FlagSet) {
	flags.BoolVar(&l.on, "enable-leader-migration", false, "leave out the controllers that --leader-migration-config gives to another controller manager, and hold its lease for those that it gives to this one")
	flags.StringVar(&l.file, "leader-migration-config", "", "`file` with a LeaderMigrationConfiguration; without one it is about controllers that are not here")
}

// migrationConfig is a LeaderMigrationConfiguration of group controllermanager.config.k8s.io.
type migrationConfig struct {
	Kind              string `yaml:"kind"`
	APIVersion        string `yaml:"apiVersion"`
	LeaderName        string `yaml:"leaderName"`
	ResourceLock      string `yaml:"resourceLock"`
	ControllerLeaders []struct {
		Name      string `yaml:"name"`
		Component string `yaml:"component"`
	} `yaml:"controllerLeaders"`
}

const migrationGroup = "controllermanager.config.k8s.io/"

// migrated is what a configuration says of the chosen controllers.
type migrated struct {
	run   []*controllers.Descriptor // those that do not belong to another controller manager
	lease string                    // the name of the lease that some of them need
	need  []string                  // the names of these
}

// of returns what is to be done with the chosen controllers. Those of this component, or of all, run under the lease of the
// migration: the program that they move to, or come from, waits for it.
func (l *leaderMigration) of(chosen []*controllers.Descriptor) (migrated, error) {
	if !l.on || l.file == "" {
		return migrated{run: chosen}, nil
	}
	config, err := l.read()
	if err != nil {
		return migrated{}, fmt.Errorf("--leader-migration-config: %w", err)
	}
	components := map[string]string{}
	for _, leader := range config.ControllerLeaders {
		components[leader.Name] = leader.Component
	}
	m := migrated{lease: config.LeaderName}
	for _, d := range chosen {
		switch cmp.Or(components[d.Name], components[d.Alias]) {
		case "":
			m.run = append(m.run, d)
		case "*", "kube-controller-manager":
			m.run, m.need = append(m.run, d), append(m.need, d.Name)
		}
	}
	return m, nil
}

// options returns those of the manager, whose own lease is in a namespace.
func (m *migrated) options(namespace string) []manager.Option {
	if len(m.need) == 0 {
		return nil
	}
	return []manager.Option{manager.SecondLease(object.Key{Namespace: namespace, Name: m.lease}, m.need...)}
}

func (l *leaderMigration) read() (config migrationConfig, err error) {
	text, err := os.ReadFile(l.file)
	if err != nil {
		return config, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&config); err != nil {
		return config, fmt.Errorf("%s: want a LeaderMigrationConfiguration in YAML, with nothing else in it", l.file) // err has what stands there
	}
	version, ok := strings.CutPrefix(config.APIVersion, migrationGroup)
	switch {
	case config.Kind != "LeaderMigrationConfiguration" || !ok:
		return config, fmt.Errorf("%s: want a LeaderMigrationConfiguration of %sv1", l.file, migrationGroup)
	case version != "v1" && version != "v1beta1" && version != "v1alpha1":
		return config, fmt.Errorf("%s: version %q; want v1", l.file, version)
	case config.LeaderName == "":
		return config, fmt.Errorf("%s: leaderName is missing", l.file)
	case config.ResourceLock != "leases" && config.ResourceLock != "endpoints":
		return config, fmt.Errorf("%s: resourceLock: want leases", l.file)
	}
	for i, leader := range config.ControllerLeaders {
		if leader.Name == "" || leader.Component == "" {
			return config, fmt.Errorf("%s: controllerLeaders[%d]: want a name and a component", l.file, i)
		}
	}
	return config, nil
}
