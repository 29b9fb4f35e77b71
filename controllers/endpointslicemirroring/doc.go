// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpointslicemirroring copies Endpoints that people or programs write by hand
// into EndpointSlices, which is what the network reads.
//
// # What it watches and writes
//
// Its keys are Endpoints. It reconciles Endpoints when they change or go, when a Service
// of their name begins or ceases to be one without selector, and when another client
// changes one of their slices. It creates, updates and deletes EndpointSlices, and no
// others than those that carry its name in the label
// endpointslice.kubernetes.io/managed-by.
//
// # Which are mirrored
//
// Those that have a Service of their name without selector. Not those with the label
// endpointslice.kubernetes.io/skip-mirror=true, nor those that are a lock for leader
// election. The slices of Endpoints that are not mirrored, or not any more, are deleted.
//
// # What holds
//
//   - For each set of ports and each type of addresses there is one slice (plan.go, a
//     function of plain values), with at most 1,000 endpoints of each subset: ready ones
//     first. An Event names what is left out, and what is not an address.
//   - An address that is ready and not ready for the same port is not ready, and stands
//     once.
//   - Slices have the labels and annotations of their Endpoints, and belong to them:
//     where others took their name, the slices are rewritten.
//   - The existing slices are observed before anything is written: the next run waits for
//     a slice that was just created.
//   - Slices with another manager are never touched.
//
// # Where it differs from upstream
//
// Behaviour is that of kube-controller-manager 1.37
// (k8s.io/kubernetes/pkg/controller/endpointslicemirroring). On purpose it differs here:
//
//   - Updates carry the version of the slice that they replace, and deletes its UID.
//     Upstream's overwrite whatever is there.
//   - Slices that were left over while no controller ran are found at the start.
//   - Changes are written at once, as by upstream; Options.BatchPeriod has them wait for each other.
package endpointslicemirroring
