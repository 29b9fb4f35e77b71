// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vacprotection keeps VolumeAttributesClasses that volumes or claims name from being
// removed.
//
// Each VolumeAttributesClass has the finalizer kubernetes.io/vac-protection, which admission adds
// when the class is created. A class that is deleted stays while a PersistentVolume or a
// PersistentVolumeClaim names it. The controller then removes the finalizer. An Event about the
// class names some of the users.
//
// A claim names a class in three places: the class that it asks for, the class that its volume has
// now, and the class that a driver is changing the volume to.
//
// # What it watches and writes
//
// It watches VolumeAttributesClasses, PersistentVolumes and PersistentVolumeClaims. It updates the
// finalizers of classes, and records Events about them.
//
// # What holds
//
//   - A class that was created without the finalizer gets it, unless it is being deleted.
//   - A class finds its users by indexes, and only a volume or a claim that stops to name a class
//     enqueues it. Both read the name of the class from the bytes of the object.
//   - An update carries the version of the class that was judged: where the class has changed
//     since, it is judged again.
//   - The decision relies on the cache, as upstream's does. A claim that is created in the same
//     moment as its class is deleted may find that the class is gone. It then waits, as a claim
//     does that names a class which was never there.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/volume/vacprotection).
package vacprotection
