// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoints keeps the Endpoints of each Service that selects Pods: the older
// form of EndpointSlices, one object a Service, which some programs still read.
//
// # What it watches and writes
//
// Its keys are Services. It reconciles a Service when the Service changes or is deleted,
// when a Pod that it selects appears, goes or changes in a way that endpoints show, and
// when its Endpoints are deleted. It creates, updates and deletes Endpoints of the
// Service's name.
//
// # The way of a run
//
//	Pods ─▶ subsets ─▶ repacked ─▶ truncated ─▶ create, update
//
// Each Pod is a subset of its own, with its address and the numbers that the Service's
// ports have there (desired.go). Repacking joins what has the same ports and addresses
// into the one form that can be compared (package serviceendpoints), and truncating
// leaves out what is beyond 1,000 addresses (truncate.go), those that are not ready
// first. All are functions of plain values.
//
// # What holds
//
//   - Endpoints show addresses of the Service's first family only.
//   - The annotation endpoints.kubernetes.io/over-capacity shows that addresses were left
//     out. The same addresses are left out in each run.
//   - Nothing is written where nothing changed. Annotations of others stay; labels are
//     those of the Service, and two that only this controller sets.
//   - Endpoints of a Service that is gone are deleted, by their UID: also those whose
//     Service was deleted while no controller ran, which are found at the start.
//     Endpoints that are a lock for leader election are not, and those that a user writes
//     before their Service are not.
//   - Endpoints of a Service without selector, and of one of type ExternalName, are left
//     alone: other clients write them.
//
// # Where it differs from upstream
//
// Behaviour is that of kube-controller-manager 1.37
// (k8s.io/kubernetes/pkg/controller/endpoint). On purpose it differs here:
//
//   - A Pod finds its Services by an index; upstream tries the selector of every
//     Service of the namespace. See package serviceendpoints.
//   - Endpoints over capacity are compared as they are written. Upstream compares them
//     whole, and therefore writes them in each run.
//   - A subset that truncating leaves nothing of goes; a server would refuse it.
//   - The order of ports and subsets is that of their names and not of hashes. Endpoints
//     that differ in order alone are not written.
//   - The trigger time of a change survives a write that failed.
//   - A conflict is tried again without an event.
//   - Changes of Pods are written at once, as by upstream; Options.BatchPeriod has them wait for
//     each other.
package endpoints
