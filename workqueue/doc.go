// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workqueue hands keys to workers. A key says which object to look at, not
// what happened to it: however often it is added, the next run looks at all of it.
//
// # Who does what
//
// A queue is filled by event handlers and timers, and emptied by workers:
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
// Items calls Done when the body ends. A worker that wants to do that itself calls
// Get and Done; it must call Done exactly once for each Get, or the key is never
// handed out again.
//
// # What is promised
//
//   - A key has one worker at any moment.
//   - Each add is followed by a run that begins after it. Adds of a key that already
//     waits are merged into the run that comes: it takes the higher priority, the
//     earlier time and the causes of all, and says in Item.Adds how many they were.
//   - A key added while it is processed runs again after Done, once.
//   - AddAfter promises a run not later than its delay, apart from the time it then
//     waits for a worker. Of several delays the earliest counts, and an add without
//     delay overrides them. A reconcile that must come back at some time therefore
//     asks for that in each of its runs.
//   - After ShutDown adds are ignored and delayed keys dropped; what is ready is still
//     handed out, and what was added while it is processed too. ShutDownWithDrain
//     waits until the last of it is done.
//
// The queue has no goroutine. Delayed keys share one timer, which does not run while
// there are none, and ends with ShutDown.
//
// # Order
//
// Keys of one priority come in order of arrival. Of several priorities the highest
// comes first, and waiting counts as priority: a key gains one level for each
// Options.AgeStep it waits. Precisely, of the next keys of each priority one is the
// oldest by
//
//	priority + waited/AgeStep
//
// and of four keys handed out while that is not the one of the highest priority, the
// first three are of the highest priority and the fourth is the oldest. So no key
// starves: among those that are older by this measure nothing arrives any more, and at
// least every fourth turn takes one of them away. And no old backlog holds up what is
// urgent by more than a third: with the defaults an initial list (Low) of a large
// cluster that has waited ten seconds takes a quarter of the turns from the changes
// (Normal) that come in, and all that they leave.
//
// An add of a higher priority moves a waiting key up: behind the keys of that priority,
// or in front of them if it has waited longer than the first.
//
// With Options.Fair the keys of one priority are divided into groups, usually by
// namespace, which take turns: each turn hands out one key of one group. A namespace
// of 100,000 keys costs another with one key a single turn. Without it there is one
// group.
//
// # Failures
//
// AddRateLimited counts a failure of the key and asks the Limiter how long to wait.
// The default is client-go's: 5 ms doubled with each failure of the key up to 1,000 s,
// and for all keys together 10 a second after the first 100. NumRequeues and
// Item.Attempt say how often a key has failed since the last Forget. A key that fails
// for ever waits in the delayed set, where it holds up no other.
//
// # Why is this key here?
//
// An add may carry a Cause. A key keeps up to MaxCauses of them through merging and
// delay, and hands them to the worker in Item.Causes. Inspect shows the keys in the
// queue with their causes, for a debug page; Stats counts, without a figure by key, for
// metrics.
//
// # What it costs
//
// "cd bench && go run . queue" holds it against client-go's plain queue, which has
// neither priorities nor causes nor figures. With object keys an add, a get and a
// done take 0.8 of its time through Get and Done and 0.6 through Items, and with
// eight workers 0.75 and 0.55; with short strings as keys, which are cheap to hash,
// just 1.0 and 0.8, and with eight workers 0.9 and 0.7. In a profile of one goroutine
// with such keys 58 % of it is reading the clock, three times a key, which client-go
// does not do; of the rest the caller's copy of the Add has 8 %, and what waits for the
// locked instructions, also three times, another 8 %, and some thirty small steps have
// less than 3 % each. What was done about it:
//
//   - Items ends a key and takes the next in one step: one reading, one lock and one
//     look for the key less.
//   - Only the monotonic clock is read, which is half of time.Now.
//   - One entry holds the whole state of a key, where client-go keeps two sets; ready
//     keys are in lists through the entries, and ranks of ageing do not change with
//     time, so nothing is sorted. A single running key is found without a look.
//   - Keys are found by a table of our own. A Go map was 29 % of the profile, most of
//     it under the lock, where others wait: it hashes a key at each look, write and
//     delete. The table is told the hash, which is made before the lock is taken.
//   - An Item is written where the worker reads it. Handing it from function to function
//     was a tenth: what has just been written in small pieces is slow to copy in large ones.
//   - Entries and causes are used again, the last used first, since it is in the cache:
//     keeping entries of idle keys in the table saved its writes, and was slower as soon
//     as other processes used the cache too. The cause on top is overwritten, not cleared.
//   - The lock is let go without a defer, which is 1 % each time. What may panic, the
//     user's function for groups and a key that cannot be hashed, lets go of it itself.
//   - Without Fair the lane of a priority stays where it is when it has no keys.
//   - A worker is woken only for a key that no other worker is on its way to.
//
// A steady queue does not allocate. A key that waits takes some 400 bytes with its
// cause and its group, 250 without; after a burst the memory is given back.
package workqueue
