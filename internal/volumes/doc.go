// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package volumes has what several controllers know of PersistentVolumes and their claims: the
// names of annotations and finalizers, the class of a claim, which claims a Pod uses, and when a
// volume is bound to a claim.
//
// # Classes
//
// [ClassOf] and [ClassOfVolume] read the class; the beta annotation wins over the field.
// [DefaultClass] chooses the default one of several.
//
// # Pods and claims
//
// A Pod names a claim ([ClaimName]) or has one made for it, whose name is that of the Pod and of
// the volume. A claim with such a name that the Pod does not own is another claim ([Uses]).
// [PodsByClaim] finds the Pods of a claim.
//
// # Binding
//
// A volume and a claim are bound when each refers to the other. [Refers] is the half of the
// volume.
package volumes
