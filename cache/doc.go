// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps a local, current copy of the objects of a kind, and notifies handlers of
// changes. Its handle of a kind writes to the server too.
//
//	API server ─▶ source ─▶ reflector ─▶ archive ─▶ store ─▶ one delta queue a handler ─▶ handler
//	             reads       lists and   compresses  snapshots   coalesces
//	             metadata    watches
//
// A [Factory] makes one informer for each selection of a kind, and shares it. [Informer] returns
// a [SharedInformer], the handle of the kind:
//
//	pods := cache.Informer[*corev1.Pod](mgr)
//	defer pods.Release()
//	pod, err := pods.Get(key)              // from the cache
//	_, err = pods.UpdateStatus(ctx, next)  // to the server
//	pod, err = pods.Server().Get(ctx, key) // from the server
//
// The type is a built-in one, a type of your own, *unstructured.Unstructured, or
// *metav1.PartialObjectMetadata for metadata alone. The cache shows a write some milliseconds
// later, when the watch has brought it. Reconciles of package controller begin after that.
//
// # Objects
//
// The store has the objects as the server sent them, compressed and without managedFields, and
// their metadata beside them: a Pod of five kilobytes takes half of one. An [Item] reads metadata without
// decoding ([Item.Meta]), single fields ([Item.Text]), and the whole object ([Item.Object]). That
// is good for many objects and few readers of each. Objects that are read again and again stay
// decoded, within a [Budget]. Decoded objects are shared and read-only: call DeepCopy before you change one.
// [Factory.DetectMutation] finds changes by mistake.
//
// # Reading
//
// A [Snapshot] is the state of a kind at one resourceVersion. It never changes, taking it costs
// nothing, and reading it takes no lock. It finds objects by key, namespace, owner, label and by
// indexes ([NewIndex]). [Snapshot.Since] returns the differences between two.
//
// # Handlers
//
// A goroutine of its own calls each [Handler], with one [Event] at a time. After some seconds without
// events the goroutine ends, and the next event starts another one. The store has a change before
// its handlers get it. Changes of an object that wait for a slow handler become one event, from the last state that the handler knows to the newest: memory is bounded by the number of
// objects, and no handler delays another. A handler can ask for every step instead; see
// [HandlerOptions]. If an object was deleted and another one created under its name, the event is
// [Replaced].
//
// # Failures
//
// A reflector resumes a broken watch where it ended, and lists again only if the server does not
// have that version any more. It retries with growing pauses, and the first informer that succeeds
// wakes the others. docs/cache.md describes versions, and servers that were restored from a backup.
// [Factory.WriteStatus] and package metrics show the state of all informers.
package cache
