// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package journal keeps, in one file, what was seen and what is still to be sent, so that
// a watch that was stopped in any way goes on where it was.
//
//	j, damage, err := journal.Open(path, journal.Options{Log: log})
//	if damage != nil { ... tell the user ... }
//
//	var b journal.Batch
//	b.Event("chat", event.ID, encoded)                  // what is to be told
//	b.Seen("pods", key, journal.Seen{UID: uid, ...})    // because of this state
//	b.Version("pods", "4711")                           // and all is told up to here
//	err = j.Commit(&b)                                  // on the disk, all of it or nothing
//
//	entries, err := j.Next("chat", 0, 100)              // the sink's side
//	err = j.Ack("chat", entries[0].Seq)                 // sent
//
// # The cursor
//
// A selection is a kind with its namespaces and selectors, under a name that the caller gives
// it. The journal has the resourceVersion of its collection, and the UID, the resourceVersion
// and a digest of each object in it: the state up to which everything was told. After a start,
// a watch that cannot go on from the resourceVersion lists the objects, compares the list with
// [Journal.Objects], and tells what is different. With [Options.States] the states themselves are in
// the file, as the caller encodes them; otherwise none is. No digest can be guessed: digests are
// keyed with [Journal.Key].
//
// # The outbox
//
// Each sink has a queue of its own, so that one that is dead delays no other. An event is
// in the queue in the same instant as the cursor moves past it, and stays until it is
// acknowledged: every event is sent at least once, and after a crash perhaps once more,
// with the same ID. Queues are bounded. If one has no room, the commit is refused with a
// [FullError], and [Journal.CommitWait] waits for room.
//
// # Many commits
//
// A commit is on the disk when it returns, and that takes a disk milliseconds. Commits of
// other goroutines share the next write meanwhile. One goroutine with much to commit puts it
// into one batch.
//
// # The file
//
// A commit is one frame with checksums at the end of the file. The place of every object and
// every event in the file is kept in memory, about 60 bytes each; objects and events are read
// from the file when they are needed. A file that is mostly obsolete is written anew.
//
// This package takes the place of an embedded database for three reasons. A commit is one write
// and one sync. A disk that returns wrong bytes or none is an error of a read; a file that is
// mapped into memory ends the process. And the code that reads the file finds damage: a frame is
// as it was written, or it is left out, and all others still count. bbolt, which was here before,
// needed a second reader of its pages for that.
//
// # Damage
//
// A file with damaged frames is set aside, and what can be read of it is written to a new one.
// The versions of all selections are empty then, so that the watch lists and compares, and tells
// the changes whose frame was lost. [Damage] says so to the user. docs/watch-journal.md has the
// format, and the damage that cannot be noticed.
package journal
