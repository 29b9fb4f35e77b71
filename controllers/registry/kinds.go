// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Kind is a kind of object with its main controller, by the name that the controller has in
// kube-controller-manager. Without that controller, an object of the kind stays as its user
// wrote it.
type Kind struct {
	object.Resource
	Controller string
	Because    string // why the controller does not run, such as [LeftOut]
}

// LeftOut is why a controller does not run that --controllers does not choose.
const LeftOut = "the flag --controllers leaves it out"

// WithoutController returns the kinds whose main controller is not among run, in the order of
// the kinds' names. chosen are the controllers that --controllers chooses, with their flags and
// feature gates set; run are those of them that were started. Kinds that need no controller of
// kube-controller-manager, such as ConfigMaps, are not among the result.
func WithoutController(chosen, run []*controllers.Descriptor) []Kind {
	var kinds []Kind
	for _, d := range Known() {
		if named(run, d.Name) != nil {
			continue
		}
		because := LeftOut
		if c := named(chosen, d.Name); c != nil {
			because = notStarted(c)
		}
		for _, r := range d.ActsOn {
			kinds = append(kinds, Kind{Resource: r, Controller: d.Name, Because: because})
		}
	}
	slices.SortFunc(kinds, func(a, b Kind) int { return strings.Compare(a.Resource.Kind, b.Resource.Kind) })
	return kinds
}

// named returns the controller with a name, nil if it is not among them.
func named(among []*controllers.Descriptor, name string) *controllers.Descriptor {
	i := slices.IndexFunc(among, func(d *controllers.Descriptor) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return among[i]
}

// notStarted returns why a controller that was chosen is not started.
func notStarted(d *controllers.Descriptor) string {
	if gate, _ := d.Closed(); gate != "" {
		return "the feature gate " + gate + " is off"
	}
	if flag := d.StoppedBy(); flag != nil {
		return "the flag " + flag.String() + " stops it"
	}
	return "it lacks " + d.Lacks()
}

// Objects returns what several objects of the kind are called, such as "StatefulSets".
func (k Kind) Objects() string {
	switch kind := k.Resource.Kind; {
	case strings.HasSuffix(kind, "s"): // a class
		return kind + "es"
	default:
		return kind + "s"
	}
}
