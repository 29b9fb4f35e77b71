// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Bench measures Setpoint beside its peers, on real parts, in one run.
//
//	go run . cache
//	go run . readers
//	go run . relist
//	go run . chaos
//	go run . manager
//
// Each measure is one line:
//
//	name setpoint=… peer=… ratio=… aim=… ok|short|told
//
// ratio is Setpoint's figure over the peer's. Candidates take turns, so that a
// machine whose speed drifts treats all alike; the figures are medians over the
// turns, and the spread is printed with -v. A measure that misses its aim says
// "short"; it is no failure of the command. One without an aim says "told": among
// these are the cases in which the design loses.
//
// The module stands outside of the workspace: the peers' versions are its own, the
// newest there are.
//
// # Managers
//
// "manager" starts each candidate on a fresh control plane.
//
// # Informers
//
// "cache", "readers" and "relist" measure Setpoint's informers beside client-go's
// shared informers, used as their documentation says: from the factory, with the
// index by namespace, over protobuf where the kind has it, with one handler that
// reads a label and the version of what it is told of. Both are told of every
// change; that Setpoint's would merge changes for a handler that is behind is not
// used. client-go's feature gates are as they come.
//
// The objects are a corpus that looks like a cluster and is the same each time
// (corpus.go and its neighbours): Pods of ReplicaSets, Nodes, ConfigMaps that people
// wrote, a custom resource, which travels as JSON, and ConfigMaps of random bytes,
// which do not compress. They are encoded once, onto a tape (tape.go), and a server
// plays that to all (replay.go): in a real one's frames, but with nothing to
// compute, uncompressed, and without TLS. Each side runs in a process of its own,
// so that its heap and its CPU time are nobody else's. The server is in the parent
// process, and its CPU time does not count; but it takes its part of a small
// machine, and rates by the clock are of both together.
//
// Heaps are what two collections leave, less what there was before the informer
// started, and nothing is decoded in them but by the side that holds decoded
// objects. The CPU of the first sync is that of the whole process from the start of
// the informer until its handler has been told of everything. Reads are of objects
// that somebody holds (warm), or that nobody has asked for since the last
// collection (cold), which for client-go is the same.
//
// # What is equal where readers and a writer meet
//
// "readers" compares how fast a store is written while goroutines list everything
// in a loop. A list is what needs no decoding: client-go's Indexer.List, and a walk
// through all items of a snapshot. Sockets would measure the scheduler, so both
// sides read their watch from memory, within the process: from the bytes of an
// event to the store, decoding included, as fast as they go. Writes are counted by
// the version that the store has reached, because the informer of client-go queues
// what its store cannot take yet.
//
// That queue is emptied a thousand changes at a time, under one lock, in the newest
// client-go. Many changes are then written between two waits for readers, and what
// the wait costs is seen in how late they are: "lag" is the time from one change at
// the server to the handler, when there is nothing else to write. The lines that
// end in "vs-indexer" hold Setpoint's rate, with all that it includes, against the
// store of client-go's informers alone, as whoever writes it one object at a time
// has it: the objects are decoded already, and one goroutine calls Update.
//
// What readers cost is CPU as well as locks, so Setpoint's rate beside ten readers
// is held against its rate beside ten goroutines that spin and touch nothing.
//
// # Relists
//
// "relist" has the server forget what it is asked for, with 410, so that both list
// again: once as a watch that begins with the state, once by a list. The heap in
// use is held against the highest that it is while changes come, because both have
// garbage in them; the live heap, what a collection leaves, against itself at rest.
package main
