// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller is the loop: it takes the key of an object that may not be as
// it should, calls a function that makes it so, and tries again where that fails.
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
//
// # What a Reconciler may rely on
//
//   - It runs for one key once at a time, however many workers there are.
//   - What it reads from the informers that the controller knows ([For], [Owns],
//     [Watches], [Reads]) includes all that earlier runs for the same key wrote.
//     After a run that wrote, the key is held back until the informers have seen
//     those writes. Nothing has to be counted or expected by hand.
//   - A write whose answer was lost counts as done or not done only after the
//     server has been asked.
//   - Its key comes with the causes: which objects changed, and how.
//   - A panic is an error of that run, with its stack in the log.
//
// # What it must do
//
// Return an error to be tried again with growing delay, [Terminal] to be left
// alone until something changes, or a [Result] that names a time. Use the context
// that it is given for its requests: own writes are noticed through it.
//
// # Stopping
//
// When the context of [Controller.Run] ends, no further key is taken, and runs
// that are under way may finish within [Grace]; then their context ends too.
package controller
