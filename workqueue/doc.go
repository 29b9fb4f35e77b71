// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workqueue hands keys to workers. A key says which object to reconcile, not what has
// happened to it: however often a key is added before a worker gets it, it runs once.
//
// Event handlers and timers fill a queue, and workers empty it:
//
//	q := workqueue.New(workqueue.Options[object.Key]{Name: "deployments"})
//	q.Add(key)                        // in a handler
//
//	for item := range q.Items() {     // in each worker
//		if err := reconcile(item.Key); err != nil {
//			q.AddRateLimited(item.Key)
//			continue
//		}
//		q.Forget(item.Key)
//	}
//
//	q.ShutDown()                      // ends the loops of the workers
//
// Items calls Done when the loop body ends. A worker can call Get and Done instead. It must call
// Done exactly once for each Get, or no worker ever gets the key again.
//
// # Guarantees
//
//   - One worker at a time has a key.
//   - Each add is followed by a run that begins after it. Adds of a key that waits are merged
//     into one run, with the higher priority, the earlier time and the causes of all.
//   - A key that is added while it is processed runs once more after Done.
//   - A delayed key runs no later than its delay, apart from the wait for a worker.
//   - After ShutDown adds are ignored and delayed keys are dropped. Workers still get the keys
//     that are ready and those that were added while they are processed.
//
// A queue has no goroutine. All delayed keys share one timer.
//
// # Order
//
// Keys of one priority come in order of arrival. A key gains one level of priority for each
// Options.AgeStep that it waits. If the key that is oldest by priority + waited/AgeStep is not of
// the highest priority, three keys of the highest priority come first and then the oldest. So no
// key starves, and an old backlog takes at most a quarter of the turns from urgent keys. An add
// with a higher priority moves a waiting key up.
//
// With Options.Fair, the groups that have keys, usually namespaces, take turns within a
// priority. A namespace of 100,000 keys delays a namespace with a single key by one turn.
//
// # Failures
//
// AddRateLimited counts a failure of the key and delays it as its Limiter says: by default 5 ms,
// doubled with each failure up to 1,000 s, and for all keys together 10 a second after the first
// 100. A key that keeps failing delays no other key.
//
// # Causes
//
// An add may carry a Cause. A key keeps some of its causes through merging and delay, and its
// worker finds them in Item.Causes. Inspect returns the keys in the queue with their causes, and
// Stats the figures for metrics. docs/performance.md has what a queue costs.
package workqueue
