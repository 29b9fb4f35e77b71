// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"strings"
)

// absent returns the full names of the controllers of kube-controller-manager 1.34 to 1.37 that
// are not built in, by their full names and their short ones: those that need the API of a cloud.
// --controllers may name them: command lines of kube-controller-manager do.
// Sources: k8s.io/kubernetes/cmd/kube-controller-manager/names and app, the descriptors of the
// controllers.
func absent() map[string]string {
	const nodes, routes, services = "cloud-node-lifecycle-controller", "node-route-controller", "service-lb-controller"
	return map[string]string{
		nodes: nodes, "cloud-node-lifecycle": nodes,
		routes: routes, "route": routes,
		services: services, "service": services,
	}
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
