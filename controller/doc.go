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
// [For] enqueues each object of an informer, [Owns] the owner of each, and [Watches] the keys
// that a mapping adds. [NewKeyed] makes a loop whose keys are no objects. [Join] makes one
// controller of several loops. Package owned has the functions for the objects of an owner.
//
// # What a Reconciler can rely on
//
//   - It runs for one key once at a time, however many workers there are.
//   - What it reads from the informers of the loop ([For], [Owns], [Watches], [Reads]) includes
//     all that earlier runs for the same key wrote. The key waits until the informers have
//     seen those writes. No controller counts or expects anything by hand.
//   - A write whose response was lost counts as done or not done only after the loop has read
//     the object from the server.
//   - The request has the causes of the run: which objects changed, and how.
//   - Changes come before the objects of the first list and of a [Resync].
//
// # What it must do
//
// It returns an error to be retried with growing delay, a [Terminal] error to be left alone
// until something changes, or a [Result] that names a time. It uses its context for all
// requests, and ends them before it returns: the loop notices own writes through the context.
//
// # Own writes
//
// The loop waits for the version that the server answered with; after a delete, until the
// informer does not show the object any more or shows it as being deleted. It waits in the
// informers of that kind that read from the server that was written to. If a write does not
// appear within seconds, the loop reads the object from the server. The key then runs if the
// informer shows the same state, or if it does not select the object. Otherwise the informer is
// behind, and the key waits up to [WriteWait]. See [RequestOf.Unseen] and [ReadStale].
//
// # Failures
//
//   - A key that keeps failing waits longer after each run, and delays no other key.
//   - A panic of a Reconciler is an error of its run. A predicate that panics chooses the event;
//     a mapping that panics loses it. [Status] and the log have panics and errors.
//   - A mapping or predicate that does not return stops its own loop, and no other. Of the
//     changes beyond 10,000, only the newest state of each object waits. When the function
//     returns, the loop handles them and then enqueues every object of each [For].
//   - When the context of [Keyed.Run] ends, no further key runs, and the runs in progress have
//     [Grace] to finish.
package controller
