// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage simulates a storage driver, so that claims get volumes, and volumes go with
// their claims, without a disk behind them.
//
// # Who does what
//
// Run creates a CSIDriver and two StorageClasses that are not there, and then plays the parts of the
// containers that a CSI driver runs beside a cluster. The provisioner creates a PersistentVolume for each
// claim whose annotation names the driver, and deletes the volume when its claim is gone and its
// reclaim policy is Delete. The resizer makes a volume as large as its claim wants it, and the
// modifier gives it the VolumeAttributesClass that its claim wants. The attacher attaches and
// detaches volumes as VolumeAttachments ask for it, and keeps both from being removed meanwhile. The
// publisher keeps a CSINode for each simulated Node.
//
// Which volume belongs to which claim is not decided here: a controller manager asks for volumes,
// binds them and releases them, and asks for attachments, and the scheduler chooses the Node.
//
// # How it behaves
//
// Each operation succeeds at once. Annotations of a claim, or parameters of its class with the same
// names, say otherwise: with the operation in the place of OP, Prefix+OP is the answer ("ok",
// "error" or "never"), Prefix+OP+"-after" is how long it takes, and Prefix+OP+"-fail-first" how
// many attempts fail. A class may have a capacity for all its volumes together, and a topology for
// each of them. docs/simulated-nodes.md has the tables.
//
// Delays and attempts are counted from the time at which the simulation has seen the object. A
// restart begins again; all else follows from the objects.
package storage
