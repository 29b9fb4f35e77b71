// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry is the list of the built-in controllers, and chooses from it.
//
// A program that runs some or all of them needs not know their packages:
//
//	chosen, err := registry.Select(registry.Known(), []string{"*", "-node-lifecycle-controller"})
//	for _, d := range chosen {
//	    c, err := d.New(mgr)
//	    err = mgr.Add(c)
//	}
//
// What [Select] understands is what the flag --controllers of kube-controller-manager does:
// "*" is all, a name is that one, "-name" is not that one; some, which are off by default,
// have to be named. Where a controller is named more than once the first mention counts. Each
// has the name that it has there, and the short one, without "-controller", that it had before
// Kubernetes 1.28 and that many a manifest still uses.
package registry
