// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllerruntime puts the cache of Setpoint under programs that were written on
// controller-runtime. One line changes:
//
//	mgr, err := manager.New(config, manager.Options{NewCache: controllerruntime.NewCache})
//
// The cache takes all of cache.Options, and behaves as the cache of
// controller-runtime does. Where it differs:
//
//   - It keeps the objects as the server sent them, compressed, and decodes an object when it is
//     read. The decoded object stays as long as something uses it.
//   - Typed, unstructured and metadata-only readers of a kind share one informer and one copy,
//     unless the kind has a transform, which gets objects of the type that the reader has.
//   - cache.TransformStripManagedFields costs nothing: the cache leaves the managed fields out
//     before it stores an object.
//   - A handler that panics loses that event, and the log has the panic. The process goes on. The
//     same holds for index functions and transforms.
//   - If an object was deleted and created again while the informer did not watch, handlers get a
//     deletion and an addition instead of an update.
//   - Readers that wait for an informer get an error when the cache stops.
//
// With the field NewClient set to [NewClient] too, reads see the writes of their client.
//
// docs/controller-runtime.md has the figures, and says when it pays.
package controllerruntime
