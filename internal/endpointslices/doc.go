// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpointslices is what those who write EndpointSlices have in common: which
// slices are whose, when two endpoints are the same, and how a change of several
// slices is written.
//
// A slice belongs to a Service by the label kubernetes.io/service-name, and to a
// controller by the label endpointslice.kubernetes.io/managed-by. [Owned] finds the
// slices of both by an index. What another manager, or a person, has made is never
// touched.
//
// An endpoint is known by its addresses, its hostname and the Pod behind it
// ([IdentityOf]); what else there is of it can change in place ([Same]).
//
// [Changes] is a list of slices to create, to update and to delete. [Changes.Recycle]
// makes one write of two by giving a slice that would be deleted the content of one
// that would be created.
//
// [Metrics] are the metrics of such a controller, from the [Tally] of each plan.
package endpointslices
