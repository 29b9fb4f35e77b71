// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package journal keeps, in one file, what was seen and what is still to be sent, so that
// a watch that is stopped in any way goes on where it was.
//
//	j, damage, err := journal.Open(path, journal.Options{Log: log})
//	if damage != nil { ... tell the user ... }
//
//	var b journal.Batch
//	b.Event("chat", event.ID, encoded)                  // what is to be told
//	b.Seen("pods", key, journal.Seen{UID: uid, ...})    // because of this state
//	b.Version("pods", "4711")                           // and all is told up to here
//	full, err := j.Commit(&b)                           // on the disk, all of it or nothing
//
//	entries, err := j.Next("chat", 0, 100)              // the sink's side
//	err = j.Ack("chat", entries[0].Seq)                 // sent
//
// # The cursor
//
// A selection is what somebody watches: a kind with its namespaces and selectors, under a
// name that the caller gives it. Of each the journal has the resourceVersion of the
// collection, and of each object in it the UID, the resourceVersion and a digest of the
// state up to which everything was told. After a start, who cannot go on from the
// resourceVersion lists the objects, compares the list with [Journal.Objects], and tells
// what is different. No state of an object is in the file, and no digest that can be
// guessed: digests are keyed with [Journal.Key].
//
// # The outbox
//
// Each sink has a queue of its own, so that one that is dead delays no other. An event is
// in the queue in the same instant as the cursor moves past it, and stays until it is
// acknowledged: every event is sent at least once, and after a crash perhaps once more,
// with the same ID. Queues are bounded. If one has no room, [Batch].Overflow says whether
// the commit is refused, so that the caller waits ([Journal.CommitWait]), or new events
// are dropped, counted in the file, and named.
//
// # Many commits
//
// A commit is on the disk when it returns, and that takes a disk milliseconds. Commits
// that come meanwhile share the next write. So it costs little to commit from many
// goroutines, and much to do it often from one: put into a batch what is there.
//
// # The file
//
// A commit is one frame with checksums at the end of the file. Where every object and every
// event stands is kept in memory, about 200 bytes an object; events themselves are read from
// the file when a sink asks for them. A file that is mostly obsolete is written anew.
//
// There are databases for such a file. This one has three properties that a B+ tree in mapped
// pages has not. A commit is one write and one sync. A disk that returns wrong bytes or none is
// an error of a read, and not a fault of the process. And damage is found by the code that reads
// the file anyway: a frame is as it was written, or it is left out, and all others still count.
//
// # Damage
//
// A file with damaged frames is set aside, and what can be read of it is written to a new one;
// whoever watches then lists and compares, so that changes of which the frame was lost are told
// all the same. [Damage] says so, for the user to know. docs/watch-journal.md has the format,
// and what cannot be noticed.
package journal
