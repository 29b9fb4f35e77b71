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
//	err := mgr.Add(c)
//
// Adding a controller to a manager binds it: it logs to the manager's logger. No option is
// needed for what the next section says.
//
// # Keys
//
// A [Controller] is a loop whose keys are objects: [For] adds each object of an informer,
// [Owns] the managing controller of each, [Watches] what a mapping says. A mapping gets a
// state of an object. The loop calls it for the old and the new state of an event and adds
// each key once, so an object that moves from one owner to another wakes both.
//
// Work that is not for one object each has keys of its own type. [NewKeyed] makes such a
// loop, and [From], [Keyed.Feed] and [Keyed.Periodically] say where its keys come from:
//
//	c := controller.NewKeyed("usage", reconcile, controller.Workers(4))
//	controller.From(c, pods, func(pod cache.Item[*corev1.Pod], add func(usage)) { ... })
//
// A run can add further keys with [RequestOf.Enqueue]. [Join] makes one controller of several
// loops. What people see of a loop is its [Status], in which keys are text; a manager shows it
// for each loop of a controller.
//
// # What a Reconciler may rely on
//
//   - It runs for one key once at a time, however many workers there are.
//   - What it reads from the informers that the controller knows ([For], [Owns],
//     [Watches], [Reads]) includes all that earlier runs for the same key wrote.
//     After a run that wrote, the key is held back until the informers have seen
//     those writes. Nothing has to be counted or expected by hand.
//   - A write whose answer was lost counts as done or not done only after the
//     server has been asked, with the client that wrote.
//   - Its key comes with the causes: which objects changed, and how.
//   - What changed comes before what was there when the controller started and what is
//     only looked at again ([Resync]). With [Fair], namespaces take turns.
//
// # What it must do
//
// Return an error to be tried again with growing delay, [Terminal] to be left
// alone until something changes, or a [Result] that names a time. Use the context
// that it is given for its requests, through the informer's own methods or client.For, and end
// them before it returns: own writes are noticed through it.
//
// # Own writes
//
// Created, updated, patched and applied objects, status and finalizers among them,
// are waited for by the version that the server answered with; deletes until the
// object is shown no longer, or as being deleted, or another has its name; of a
// deletecollection, and of a write without answer, the server is asked what it did.
// [Status] has the keys that wait, and what for.
//
// A write is waited for in the informers of its kind that read from the server that was
// written to. An informer that does not select the object as the write left it is waited for
// until it does not show it, which the answer of the write mostly tells.
//
// What does not appear within seconds is asked about too. The key goes on if the
// informer shows of the object just what the server has, and if it never will show
// it because it does not select it; and a server that was set back to an older state
// and has lost the write is not waited for. Otherwise the informer is behind, and to
// act on what it shows would be to act on a past that this very controller has
// changed. After [WriteWait], 5 minutes, the key is let go all the same, and the run
// is told in [RequestOf.Unseen]. [ReadStale] switches all of this off.
//
// # Owned objects
//
// [OwnedBy] marks an object as managed by an owner, and [Claim] adopts and releases.
// [SlowStart] makes many without wasting requests on what cannot work, and [Surplus]
// tells which to delete, by reasons of your own or, for Pods, those of ReplicaSets
// (package podrank). [AddFinalizer] and [RemoveFinalizer] are for what has to be done
// before an object goes.
//
// # Failures
//
//   - A key that fails for ever comes ever more seldom, and holds up no other.
//     [Status] has its last error; the log has some of them.
//   - A key that is given up, with [MaxRetries] or [Terminal], is in the log at once;
//     [OnGivingUp] can tell it to others.
//   - A panic of the Reconciler is an error of that run, one of a predicate chooses the
//     event, one of a mapping loses it. [Status] counts them and has the last
//     of each part, and the log has their stacks.
//   - A mapping or a predicate that does not return holds up its own controller and no
//     other, also where controllers share an informer. 10,000 changes wait for it; those
//     that come then are merged, one an object. The log, the status page of the informers
//     and the metrics name the controller. When it returns, it is called for what waits,
//     and then with a [cache.Resync] for every object of its informer, and every object
//     of each [For] is looked at again.
//
// # Stopping
//
// When the context of [Keyed.Run] ends, no further key is taken, and runs
// that are under way may finish within [Grace]; then their context ends too.
package controller
