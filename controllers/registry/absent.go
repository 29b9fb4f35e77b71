// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/object"
)

// absentController is a controller of kube-controller-manager that is not built in.
type absentController struct {
	names  string            // the full one first
	actsOn []object.Resource // as in [controllers.Definition]
}

// notBuiltIn are the controllers of kube-controller-manager 1.34 to 1.37 that are not built in.
// --controllers may name them: command lines of kube-controller-manager do. A controller that
// has become built in is left out of the result. Kinds of alpha APIs are not here: a server
// does not serve them by default.
// Sources: k8s.io/kubernetes/cmd/kube-controller-manager/names and app, the descriptors of the
// controllers.
func notBuiltIn() []absentController {
	all := []absentController{
		{names: "cloud-node-lifecycle-controller cloud-node-lifecycle"},
		{names: "node-route-controller route"},
		{names: "service-lb-controller service"},
	}
	builtIn := map[string]bool{}
	for _, d := range Known() {
		builtIn[d.Name] = true
	}
	return slices.DeleteFunc(all, func(a absentController) bool { return builtIn[a.name()] })
}

// name returns the full name.
func (a absentController) name() string {
	name, _, _ := strings.Cut(a.names, " ")
	return name
}

// absent returns the full names of the controllers that are not built in, by all their names.
func absent() map[string]string {
	all := map[string]string{}
	for _, a := range notBuiltIn() {
		for each := range strings.FieldsSeq(a.names) {
			all[each] = a.name()
		}
	}
	return all
}

// Absent returns the full names of the controllers that a list for [Select] chooses and that
// are controllers of kube-controller-manager without being built in, in the order of their
// names. Those that it leaves out are not among them.
func Absent(choice []string) []string {
	full := absent()
	chosen := map[string]bool{}
	for _, item := range choice {
		name, without := strings.CutPrefix(item, "-")
		if of, ok := full[name]; ok {
			if _, mentioned := chosen[of]; !mentioned {
				chosen[of] = !without
			}
		}
	}
	var names []string
	for name, wanted := range chosen {
		if wanted {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
