// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodelifecycle watches over Nodes: which of them may be given Pods, which
// have fallen silent, and which must give their Pods up.
//
// The server's admission taints every new Node not-ready:NoSchedule, and only this
// controller lifts that taint: without it no Pod is ever scheduled.
//
// # What it watches and writes
//
// Its keys are Nodes. The check of all of them is a loop of its own. It watches Nodes and
// the binding of Pods, and reads the Leases of Nodes. It writes
//
//   - NoSchedule taints: one for each condition that speaks against new Pods, and one
//     for a node that is cordoned; each goes when its reason does;
//   - the NoExecute taints not-ready and unreachable, at a limited rate (see below);
//   - the labels beta.kubernetes.io/os and beta.kubernetes.io/arch, with the values of
//     kubernetes.io/os and kubernetes.io/arch;
//   - the conditions of a Node that has fallen silent: Unknown;
//   - the Ready condition of the Pods of such a Node: False, so that Services send
//     them nothing;
//   - Events: RegisteredNode, RemovingNode and NodeNotReady.
//
// It evicts no Pod: taint-eviction-controller acts on NoExecute taints. It has
// no metrics of its own either; upstream's are called node_collector_*.
//
// # Health
//
// All Nodes are checked every second ([Options] has this and all other figures), and when
// the grace period of one is over. A heartbeat in the Node's status, or a renewal of its
// Lease, counts from the time at which it is noticed here; the clocks of Nodes are not
// used. After 50 s without one the Node is silent, after 60 s if it has never posted a
// status.
//
// A watch of Leases that lags makes every Node seem silent. Before a Node is turned Unknown
// its Lease is therefore read from the server. If that is another version than the one in
// the cache, the cache is behind: no Node is judged until it has caught up, or a grace
// period has passed. If the Lease cannot be read, its Node is left as it is, and the read
// is tried again.
//
// # NoExecute taints
//
// Many Nodes down at once are more likely cut off than broken, and moving all their
// Pods would harm what still works. So NoExecute taints are set, in each zone, on
// one Node in 10 s, those first that have been down longest; if three or more and
// 55 % of the zone are down, on one in 100 s in a zone of more than 50 Nodes, and on
// none in a smaller one; and if every zone is down whole, on none, and those that
// there are are lifted. A taint whose Node is ready again is lifted at once.
//
// # How it is built
//
// The monitor judges. It is pure: sightings of Nodes and a time go in, findings come out;
// it reads no clock and writes nothing. What the monitor allows or requests is done in
// the run of the single Node, like everything else about that Node, with its retries.
// leases.go confirms that a Node is silent; taints.go, labels.go, conditions.go and
// pods.go decide what to write.
//
// # What holds
//
//   - A Node is only worked on when something in it is not as it should be. That is
//     decided where the event arrives, without a copy: heartbeats cost neither a run
//     nor a write.
//   - Taints and conditions are patched with the resourceVersion that they were decided
//     on. The list of taints is replaced as a whole, and a taint that another client has
//     just set must not be lost; a Node that has just posted is not silent.
//   - Time in which the monitor did not run does not count against a Node. If there was
//     no connection, or no processor, for half the grace period, the period starts again
//     for all Nodes.
//   - No NoExecute taint is lifted because all Nodes seem silent by the cache alone. That
//     every zone is down counts once each Node that was ready is confirmed to be silent.
//
// # Differences from upstream
//
// Behaviour is that of kube-controller-manager 1.37
// (k8s.io/kubernetes/pkg/controller/nodelifecycle, node_lifecycle_controller.go). On
// purpose it differs:
//
//   - Taints and labels are written in one patch, without a read before. Upstream
//     needs up to three pairs, and forgets a Node whose write failed until its next
//     heartbeat.
//   - A start of the controller leaves NoExecute taints that are right as they are.
//     Upstream lifts all and sets them again, which restarts the time for which Pods
//     tolerate them.
//   - Pods are marked not ready while their Node is Unknown, whatever it was before.
//     Upstream does it only if the Node was ready before. For a Node whose kubelet
//     says False, both leave the Pods that are there to that kubelet; upstream marks
//     those once that it sees for the first time.
//   - The time of a start-up begins when the Node is first seen, not with its
//     creation timestamp, which is of another clock.
//   - A silent Node is noticed some 1.2 s late at most. Upstream checks every 5 s, both
//     for its last heartbeat and for its absence.
//   - When the time ends in which every zone was down, no grace period starts again:
//     upstream's would help only a Node that is silent and not Unknown yet.
//   - What is granted at a rate is done until it succeeds, and a grant that failed at
//     first costs no second one.
//   - A write to a Lease that does not renew it is not a heartbeat. Upstream compares the
//     server's version with the version of the last renewal, and leaves a dead Node alone
//     whose Lease a user has annotated.
//   - The Lease of a Node is read from the server once, when it is turned Unknown.
//     Upstream reads it every 5 s for as long as the Node is silent.
//   - A cache of Leases that does not catch up is noticed again after a grace period.
//     Upstream waits without end, as after an etcd that was restored from a backup.
//   - The last two of the points under "What holds".
package nodelifecycle
