// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worlds is for controllers of things that no API server holds: buckets of a cloud, volumes
// at a node, devices. There a controller compares two worlds. The desired world is what objects ask
// for. The actual world is what exists outside; what the controller knows of it is from the last
// observation, and may be old.
//
//	objects ─▶ desired ─┐
//	                    ├─▶ difference ─▶ operation ─▶ done, not done, or uncertain
//	outside ─▶ actual ──┘                    │                            │
//	   ▲         ▲                           │                            │
//	   │         └────── what is known ◀─────┴──── observe first ◀────────┘
//	   └──────────────────────────────────── changes
//
// # What the loop does already
//
// A controller.Keyed runs one key at a time and other keys in parallel, up to the number of its
// workers. Events and timers start its runs, no loop polls. When it stops, the runs in progress have
// the grace period to end. This package has no loop of its own: [Driver.Reconcile] is a reconciler.
//
// # What a World adds
//
// A [World] remembers, for each key:
//
//   - what is known: nothing yet, that the thing is absent, that it is present and how, or that it
//     is uncertain ([Knowledge]);
//   - the operation in progress, and when it must have ended. It may outlive the run that began it;
//   - how often an operation failed in a row, and when it may be tried again. An event does not
//     shorten that wait, which is the difference to the rate limit of a queue.
//
// # Results
//
// An operation that returns nil is done. One that returns [NotDone] has changed nothing. After any
// other error the operation may have happened: the call may have timed out after the server did its
// work. The key is then [Uncertain]. A World starts no other operation for such a key until an
// observation says what is there; the same operation may be tried again, so operations must be
// idempotent.
//
// # Two ways to use it
//
// A [Driver] is for one thing a key: it observes, compares and runs the next [Step] until there is
// none. A controller whose keys stand for several things, or whose operations are objects of the
// API that another program carries out, calls [World.Begin] and [World.End] itself. The controller
// of VolumeAttachments does.
//
// The folder examples/buckets is a whole operator with a Driver.
//
// A World is in memory and is lost with the process. After a restart each key is Unknown and is
// observed before anything is done about it. So a controller must be able to find the things that
// it made before: by their names, or by a tag.
package worlds
