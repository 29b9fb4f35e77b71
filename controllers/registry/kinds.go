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
	BuiltIn    bool // whether Setpoint has the controller
}

// WithoutController returns the kinds whose main controller is not among run, in the order of
// the kinds' names. Kinds that need no controller of kube-controller-manager, such as
// ConfigMaps, are not among them.
func WithoutController(run []*controllers.Descriptor) []Kind {
	var kinds []Kind
	for _, d := range Known() {
		if slices.ContainsFunc(run, func(r *controllers.Descriptor) bool { return r.Name == d.Name }) {
			continue
		}
		for _, r := range d.ActsOn {
			kinds = append(kinds, Kind{Resource: r, Controller: d.Name, BuiltIn: true})
		}
	}
	for _, a := range notBuiltIn() {
		for _, r := range a.actsOn {
			kinds = append(kinds, Kind{Resource: r, Controller: a.name()})
		}
	}
	slices.SortFunc(kinds, func(a, b Kind) int { return strings.Compare(a.Resource.Kind, b.Resource.Kind) })
	return kinds
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
