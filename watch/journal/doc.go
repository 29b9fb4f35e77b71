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
// guessed at: digests are keyed with [Journal.Key].
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
// # Damage
//
// The file is one of bbolt, which maps it into memory and believes what is in it. Here it
// is read first, every page and every record with its checksum. A file whose pages are
// wrong is set aside and a new one is begun; single records that are wrong are taken out.
// [Damage] says which, for the user to know. docs/watch-journal.md has the format, and
// what cannot be noticed.
package journal
