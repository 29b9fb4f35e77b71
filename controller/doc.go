// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller is the loop: it takes the key of an object from a work queue, calls a
// function that brings the object to its desired state, and retries if that fails.
//
//	sources ─▶ work queue ─▶ workers ─▶ Reconciler ─▶ client
//	   ▲                                                │ writes
//	   └────────────── informers ◀── API server ◀───────┘
//
// A whole controller:
//
//	pods := cache.Informer[*corev1.Pod](mgr)
//	c := controller.New("pod-logger",
//	    func(ctx context.Context, req controller.Request) (controller.Result, error) {
//	        pod, err := pods.Get(req.Key)
//	        ...
//	    },
//	    controller.For(pods), controller.Workers(4))
//	err := mgr.Add(c)
//
// A [Controller] is a loop over objects, [Keyed] one over keys of any type, and [Join] makes one
// controller of several. [Option] has the options by purpose. [Host], [Loop] and [Status] are for
// managers. The folders below have what reconcilers need beside the loop: predicate chooses
// events, owned writes the objects of an owner, finalizer and status the object itself.
//
// # What a Reconciler can rely on
//
//   - It runs for one key once at a time, however many workers there are.
//   - What it reads from the informers of the loop ([For], [Owns], [Watches], [Reads]) includes
//     all that earlier runs for the same key wrote; [WriteWait] says how. No controller counts
//     or expects anything by hand.
//   - A write whose response was lost counts as done or not done only after the loop has read
//     the object from the server.
//   - The request has the causes of the run: which objects changed, and how.
//   - Changes come before the objects of the first list and of a [Resync].
//   - It runs in one process at a time, where a manager elects a leader. Mappings and predicates are called in
//     those that stand by too ([Keyed.StandBy]), and must not write.
//
// # What it must do
//
// It returns an error to be retried with growing delay, a [Terminal] error to be left alone until
// something changes, or a [Result] that names a time. It uses its context for all requests, and
// ends them before it returns: the loop notices own writes through the context.
package controller
