// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodes simulates the machines of a cluster: Nodes that are Ready, and Pods
// bound to them that start, become ready, crash, complete and terminate as a
// kubelet would have them, without a process being started.
//
// # Who does what
//
// Run registers the Nodes node-0, node-1, … and from then on plays two parts for
// each: the kubelet's heartbeats (a Lease every ten seconds, a status every five
// minutes or when it changed), and the kubelet's writes to the Pods that are bound
// to it. It schedules nothing, evicts nothing and lifts no taint: those are for
// controllers, and what they see is what a kubelet would show them.
//
// Only Nodes with the label ManagedLabel and one of those names are played. A Node that
// is not simulated, whatever its name, is left alone, and so are Pods bound to it. A Node
// that is deleted stays so until the next Run.
//
// # What becomes of a Pod
//
// A Pod runs and is ready at once, and for ever; the containers of a Job's Pod end after
// JobRuntime with exit code 0. Annotations say otherwise: StartAfter, ReadyAfter,
// UnreadyAfter, FlipEvery, ExitAfter, ExitCode, FailFirst, ImagePull and Reject for a Pod,
// usually in the template of its owner, and NodeSwitch for a Node. An annotation with a
// value that has no meaning is ignored, and an Event with the reason InvalidSimulation
// names it. docs/simulated-nodes.md has a table of them, with examples.
//
// All follows from the Pod as it is in the API, and the time: type kubelet is a function
// of the two. The one exception is FailFirst for the Pods of a Job, which is about several
// Pods and decided by the store. It keeps no state of its own, so a simulation that is
// stopped and started, or that misses the API server for a while, continues where the Pods
// are.
//
// A deleted Pod is not ready at once, ends after its grace period, shortened to
// Options.Grace, with exit code 143, and is then removed with a grace period of 0.
// A finalizer holds it in a final phase, which is what a Job counts.
//
// # Volumes
//
// A Pod waits until its claims are bound and its volumes are attached, by the kubelet's protocol:
// the Node's status says in volumesInUse what is going to be mounted, then a volume that the status
// names in volumesAttached is mounted, and the volume stays in use until the containers have ended.
// Attaching is for the attach-detach controller. Which volumes are in use follows from the Pods,
// claims and PersistentVolumes; a Node that is silent changes nothing.
//
// # Metrics
//
// With Options.Metrics, kubectl top and autoscalers read what the annotations of the Pods
// state; package metrics has the rules, and serves the APIs.
//
// # Logs
//
// With Options.Serving, one server on loopback answers an API server's requests to
// kubelets for all Nodes: kubectl logs gets the log of a container, and exec, attach and
// port-forward are refused with a sentence that names the Node. A log is made of the
// changes of the Pod's status, by type records, and is bounded.
//
// # Stages
//
// KWOK's Stages (kwok.x-k8s.io/v1alpha1) can be brought along with Options.StageFiles. A
// Pod or Node that one of them selects is played by it, and by the rules above only while
// none does; leases are renewed in any case.
//
// # Why not all of KWOK
//
// The Stages are KWOK's: its packages lifecycle, expression, cel and gotpl, which are
// pure, select and render them. Its controllers (sigs.k8s.io/kwok/pkg/kwok/ controllers
// v0.8.0) fit the module graph but not this use. They have no stop: each start leaves
// five goroutines behind for ever when its context ends (the loops of three delaying
// queues, the event broadcaster), which a control plane that tests start and stop cannot
// afford. They give up a write that fails with anything but a refused connection or a
// timeout of the server's, and do not handle the object again until it changes, so Pods
// get stuck when the API server goes away. They forget at a restart which addresses are
// taken. A delay starts again whenever anything of the object changes. And they cannot
// silence one Node. With their configuration loader they also add some 50 MB to a binary,
// against 6.
package nodes
