// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldpaths names the fields that a write changes, without their values: those that a patch has, and those
// that differ between two states of an object.
//
//	spec.replicas
//	metadata.labels[app.kubernetes.io/name]
//	spec.template.spec.containers[web].image
//
// An element of a list is named by its name, key or type, if it has one; otherwise the path ends at the list. A path
// into a map whose values may be secret, such as the data of a Secret, ends at the map.
package fieldpaths
