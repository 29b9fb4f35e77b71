// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protection keeps an object from being removed while something uses it: a claim while a
// Pod mounts it, a class while an object names it.
//
//	p := protection.Protection[*corev1.PersistentVolume]{
//	    Objects:   volumes,
//	    Finalizer: "kubernetes.io/pv-protection",
//	    UsedBy:    usersOf,
//	    Recorder:  host.Recorder("volume-protection"),
//	}
//	c := controller.New("volume-protection", p.Reconcile,
//	    controller.For(volumes),
//	    controller.Watches(users, objectsOf))
//
// Each object gets the finalizer. A deleted object keeps it until UsedBy finds no user. The
// controller must watch the users, so that the end of the last one enqueues the object. Until
// then each run states the reason [InUse], which names the users, and the first of these runs
// records an Event with the same sentence.
package protection
