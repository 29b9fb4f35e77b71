// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpointslice keeps the EndpointSlices of each Service that selects Pods.
//
// # What it watches and writes
//
// Its keys are Services. It reconciles a Service when the Service changes, when a Pod
// that it selects appears, goes or changes in a way that endpoints show, and when another
// client changes one of its slices. It reads Nodes for their zones. It creates, updates
// and deletes EndpointSlices, and no others than those that carry its name in the label
// endpointslice.kubernetes.io/managed-by.
//
// # The way of a run
//
//	Pods ─▶ members ─▶ groups ─▶ pack ─▶ hints ─▶ create, update, delete
//
// In words:
//
//   - members (member.go) are the Pods that the Service selects and that have an
//     address and have not ended, each with its zone and its ports. A port that the
//     Service calls by name may have another number in each Pod.
//   - groups (plan.go): for each family of addresses that the Service has, and each set
//     of ports among the members, slices of their own.
//   - pack (pack.go) puts the endpoints of a group into slices of at most 100, with the
//     fewest writes. One Pod that becomes ready is one write, however many there are.
//   - hints say for whom an endpoint is: by trafficDistribution (hints.go), or by the
//     annotation topology-mode (zones.go, balance.go).
//
// All but the first and the last step are functions of plain values.
//
// # What holds
//
//   - Each member with an address of a family stands in exactly one slice of that
//     family; no slice has more than 100 endpoints.
//   - A family without endpoints has one slice without endpoints, which distinguishes a
//     Service without endpoints from a Service that has not been reconciled yet.
//   - The existing slices are observed before anything is written: the next run waits for
//     a slice that was just created, and so none is created twice. Nothing is expected or
//     counted by hand.
//   - Slices with another manager are never touched. Slices of an earlier Service of the
//     same name are deleted, and never used again.
//   - A slice has the labels of its Service, and three that only this controller sets.
//   - The annotation last-change-trigger-time is the time of the earliest change that a
//     write answers to, and is not there if the change has no time.
//   - ready is serving and not terminating, or always true where the Service publishes
//     Pods that are not ready.
//
// # Whom it leaves alone
//
// A Service without selector, one of type ExternalName, and one that is gone. The slices
// of the latter go with their owner, which is the garbage collector's work; those of a
// Service that has lost its selector stay as they are: the user who removed the selector manages them.
//
// # Where it differs from upstream
//
// Behaviour is that of kube-controller-manager 1.37
// (k8s.io/kubernetes/pkg/controller/endpointslice and k8s.io/endpointslice). On purpose
// it differs here:
//
//   - A Pod finds its Services by an index; upstream tries the selector of every
//     Service of the namespace. See package serviceendpoints.
//   - Pods that have no address, and changes that endpoints do not show, start no run.
//     A Pod that ends does, even if it says that it is still ready.
//   - What is left of a slice that has lost all its endpoints is filled before other
//     slices are: it would be written in any case.
//   - The trigger time of a change survives a write that failed.
//   - A slice that another client changed is reconciled at once, and not a second later:
//     the key waits anyway until the own writes have been observed.
//   - A conflict is tried again without an event.
//   - Where endpoints are shared out by zone, a change of a Node enqueues all Services
//     that request it. Upstream remembers how each was shared out, and wakes those whose
//     zones would be overloaded.
//   - Changes of Pods are written at once, as by upstream; Options.BatchPeriod has them wait for
//     each other.
package endpointslice
