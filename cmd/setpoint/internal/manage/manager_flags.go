// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/controllers"
)

// tuning is the configuration of the controllers: by the flags that they declare, and by
// gates.
type tuning struct {
	known            []*controllers.Descriptor
	featureGates     FeatureGates
	emulatedVersions []string
	compatibleWith   []string
	gates            map[string]bool // which are on; check fills it
}

func (t *tuning) flags(flags *pflag.FlagSet) {
	for _, d := range t.known {
		for _, f := range d.Flags {
			declare(flags, f)
		}
	}
	flags.Var(&t.featureGates, "feature-gates", "Kubernetes feature `gates`, such as A=true,B=false. These have an effect here; the others of Kubernetes are accepted:\n"+gateHelp(gatesRead(t.known)))
	flags.StringSliceVar(&t.emulatedVersions, "emulated-version", nil, "behave as this `version` of Kubernetes would, such as 1.35")
	flags.StringSliceVar(&t.compatibleWith, "min-compatibility-version", nil, noEffect+idleReason("min-compatibility-version"))
}

// check returns what is wrong with the flags, and sets which gates of the controllers are
// on.
func (t *tuning) check() error {
	for _, d := range t.known {
		for _, f := range d.Flags {
			if err := f.Check(); err != nil {
				return err
			}
		}
	}
	err := compatible(t.compatibleWith, t.emulatedVersions)
	if err != nil {
		return err
	}
	t.gates, err = t.featureGates.obey(t.known, t.emulatedVersions)
	return err
}

// running returns those of the controllers that no flag of their own stops.
func running(chosen []*controllers.Descriptor) (run []*controllers.Descriptor) {
	for _, d := range chosen {
		if d.StoppedBy() == nil {
			run = append(run, d)
		}
	}
	return run
}

// Startable returns those of the controllers that neither a flag of their own nor a feature gate
// turns off.
func Startable(chosen []*controllers.Descriptor) []*controllers.Descriptor {
	return slices.DeleteFunc(running(chosen), func(d *controllers.Descriptor) bool {
		gate, _ := d.Closed()
		return gate != ""
	})
}
