// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps a local, always current copy of the objects of a kind, and
// tells handlers what changes. Its handle of a kind writes to the server too.
//
// # The way of a change
//
//	API server ─▶ source ─▶ reflector ─▶ archive ─▶ store ─▶ one delta queue a handler ─▶ handler
//	             reads       keeps in    compresses  snapshots   coalesces
//	             metadata    step
//
// A reflector lists a kind once and then watches it. It resumes a watch that ends
// where it ended, and lists again only where the server has forgotten that place.
// Each change goes into the store first and to the handlers after, so that a
// handler that looks into the store finds what it was told of, or something newer.
// A list that is read again is held beside the store only as far as it differs.
//
// # Objects are kept as they came
//
// The store does not hold decoded objects. It holds what the server sent, without
// managedFields and compressed against a dictionary of the kind, and beside it what
// selects an object and relates it to others: a Pod of five kilobytes takes one. An
// [Item] has that metadata at hand ([Item.Meta]); [Item.Object] decodes, and two
// readers of one object share what was decoded for as long as somebody holds it.
// docs/cache-format.md has every byte of it. Servers that can leave managedFields out of
// what they send are asked to; [WithManagedFields] keeps them.
//
// That is right for many objects and few readers of each. Who decodes every object
// all the time pays for it each time: decide by metadata where that is enough, read
// single fields with [Item.Text], look up with an index instead of walking.
//
// # Readers
//
// A [Snapshot] is the state of a kind at one resourceVersion. Taking one costs
// nothing, reading from it takes no lock, and it never changes: readers and the
// writer do not wait for each other. [SharedInformer.Get] reads from the newest.
// Objects are found by key, namespace, owner, label, and by the indexes that users add
// ([NewIndex]), and [Snapshot.Since] tells what differs from an earlier one.
//
// Objects in a snapshot are shared by all readers. They are read-only: call
// DeepCopy before you change one. [Factory.DetectMutation] finds who did not.
//
// # Writes
//
// A [SharedInformer] is the one handle of a kind. What it reads comes from the cache, and
// what it writes goes to the server, with the client of whoever it was asked of:
//
//	pods := cache.Informer[*corev1.Pod](mgr)
//	pod, err := pods.Get(key)              // from the cache
//	_, err = pods.UpdateStatus(ctx, next)  // to the server
//	pod, err = pods.Server().Get(ctx, key) // from the server
//
// The cache shows a write some milliseconds later, when the server has sent it. Reconciles
// of the controller package begin after it does.
//
// # Handlers
//
// A [Handler] is called by one goroutine of its own, with one [Event] at a time,
// in order for each object. What waits for a slow handler is kept once per object:
// changes of an object that the handler has not seen yet become one, from the
// oldest state that it knows to the newest. A handler that blocks for ever
// therefore holds memory in proportion to the number of objects, never to the
// number of changes, and delays nobody else. An object that came and went unseen
// is not told of.
//
// A handler that records, or wakes a reader of snapshots, asks for every step instead. It
// may rely on this:
//
//   - While fewer than its limit wait (10,000 by default) it is told of each change by
//     itself, in the order of the server.
//   - Beyond the limit it holds up nobody. Further changes are merged, one an object,
//     until half the limit has been handled: memory is bounded by twice the limit and the
//     number of objects. Objects that come and go meanwhile are told of as added and
//     deleted, as many as the limit.
//   - Either way each event begins where the one before it of the same object ended, and
//     the last one leads to what is true.
//   - After changes were merged, and once nothing waits, CaughtUp is called: who wakes
//     readers has everything read again, for a reader may have seen a state in between
//     that was not told of.
//   - The log and [HandlerStatus] name a handler that is behind.
//
// A handler that must have each step, and whose informer nobody else uses, asks for HoldUp:
// the informer then reads on when there is room. See [HandlerOptions].
//
// Names are addresses and UIDs are identities: where an object was deleted and
// another one created under its name between two events, the event is [Replaced],
// not an update.
//
// # Sharing
//
// A [Factory] makes one informer for each selection of a kind, however many ask.
// [Informer] is how to ask, and takes a reference that Release gives back:
//
//	pods := cache.Informer[*corev1.Pod](factory)
//	defer pods.Release()
//
// T is a built-in type, a type of your own, *unstructured.Unstructured, or
// *metav1.PartialObjectMetadata for metadata alone, which an informer of whole objects
// serves too. The factory logs, at the level debug, where two informers cache the same kind
// with different selectors.
//
// When a server goes, its informers try again on their own, with growing pauses.
// The first one whose watch works wakes the others.
//
// A server that was restored from a backup is followed back where it says that it does not
// know the version that it is asked for: the state is listed, and the version of the state
// goes back with it. Restore etcd with its revisions raised and marked as compacted (etcdutl
// snapshot restore --bump-revision --mark-compacted), and the server says so. One whose
// revisions simply went back accepts a watch at a version of its future and sends nothing.
// That cannot be told from a kind at rest: the informer shows the old state until the
// server's versions pass it, and then misses what was changed before. Restart the program
// after such a restore.
//
// An object that the transform of an informer fails for holds up no other. See [Transform].
//
// # Versions
//
// An informer knows up to which resourceVersion it has seen its kind.
// [SharedInformer.Observed] waits until it has seen a given one; the controller
// package rests its reads of own writes on that.
//
// A server may make several changes at one version: etcd deletes all keys of a lease in one
// revision. Each change is stored and told when it arrives. [Snapshot.Complete] is the
// version up to which certainly none is missing, and where a watch that ends is resumed.
// The server then sends some changes again, and they change nothing and are told to nobody.
//
// # What can be seen
//
// [Factory.WriteStatus] writes a page: objects, bytes, how far behind, what is in the
// way, why lists and watches were begun again, and what waits for which handler.
// Package metrics has the same for Prometheus.
package cache
