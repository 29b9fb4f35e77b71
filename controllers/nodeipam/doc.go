// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeipam gives Nodes the ranges of addresses of their Pods, spec.podCIDRs.
//
//	--cluster-cidr=10.244.0.0/16   10.244.0.0/24   10.244.1.0/24   10.244.2.0/24  …  256 ranges
//	                               node-a          node-b          free
//
// It runs with --allocate-node-cidrs. In a cluster of two families a Node gets one range of each
// network of --cluster-cidr, in the order of the flag.
//
// # What it watches and writes
//
// It watches Nodes, and writes spec.podCIDR and spec.podCIDRs of those that have none. The API
// server refuses to change them later.
//
// # What holds
//
//   - No two Nodes get the same range. Before the first range is given, the ranges of all Nodes
//     are read from the server, not from the cache: a process that led before may have given
//     some just now.
//   - A Node keeps the ranges that are chosen for it. If a write gets no answer, the Node is read
//     from the server, and the same ranges are written again. They become free when the server
//     says that the Node is gone or has others.
//   - Of two ranges, a Node gets both or none.
//   - A range that became free is given again after all others. A process that starts gives the
//     ranges behind the last one that is used first.
//   - No Node gets addresses of --service-cluster-ip-range.
//   - A range that a Node has from elsewhere is kept from other Nodes as far as it is in a
//     network of --cluster-cidr, whatever its size and its family.
//   - Heartbeats of Nodes cost no run.
//
// # When ranges run out
//
// An Event CIDRRangeFillingUp, a line of the log and a metric say that 80, 90, 95 and 100
// percent of the ranges are used. A Node that gets none has an Event CIDRNotAvailable with the
// numbers, and gets one when another Node is deleted.
//
// # What differs from kube-controller-manager
//
// Behaviour, flags, metrics and names of Events are those of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/nodeipam), with these differences:
//
//   - It ends at the start, again and again, if a Node has a range that --cluster-cidr does not
//     have. Here the log names such Nodes, and the others are worked on.
//   - After a write that failed it gives the range to another Node, although the server may have
//     carried out the write.
//   - If one of two networks has no range left, it loses a range of the other with each try.
//   - A range that two Nodes have becomes free when one of them is deleted. Here an Event
//     PodCIDRShared names them, and the range stays used until both are gone.
//   - After a restart it gives the lowest free range first, which may have become free just now.
//   - It tries again for each Node without a range, with growing delay. Here a Node that waits
//     runs when a range becomes free.
package nodeipam
