// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakechaos does to the clients of an API server what real servers, networks and
// backups do on their worst days, and runs a campaign that holds a cache against it.
//
// # The server
//
// A [Server] is one of package fakeapi behind a network of its own. It serves one kind:
// Pods, in protobuf and JSON, or a custom kind, in JSON alone. A model changes the objects,
// and remembers the history of changes, each at its resourceVersion.
//
// While the server rages, it answers requests wrongly, late, in part or not at all: [Faults]
// lists how. It never lies about history. A client that gets a whole answer may rely on it,
// an event means that the change happened, and a watch leaves nothing out. So a client must
// come to hold what the server holds once the server is calm.
//
// Four of the faults are no real server's. [Replay] and [Repeat] send old changes again,
// which a client recognizes by their versions. [Foreign] sends an object of another kind,
// and [Garbled] a change that cannot be read, so that a client has to list.
// [Options.Without] leaves them out, to see how a client does with servers as they are
// documented.
//
// # Histories
//
// A server that is restored from a backup begins a new history: versions go back, and
// lead to other objects than before. Each history has its own remainder of the version
// modulo [histories], so that the server recognizes a request for what comes after a
// version of a history that never was, and answers that it does not know the version. A
// real server cannot recognize it. It is why a backup of etcd is restored with its
// revisions raised and marked as compacted, which has the same effect.
//
// # The campaign
//
// [Run] drives changes and accidents, in rounds. At the end of each the faults stop
// and the client has some minutes to come to rest. Then its contents must be the
// server's, and each handler must have been notified of all objects that exist and of
// the end of all others; an [Observer] keeps count. Snapshots that were read on the way
// are held against the model's state at their version.
//
// # Time and chance
//
// Server and client talk over net.Pipe, and all waiting is time.Sleep and timers:
// in a testing/synctest bubble a campaign of days passes in seconds, with the
// pauses of the client as they are. The history and the dice of the faults come from
// a seed. How goroutines interleave does not, so the same seed gives the same kind
// of day, not the same day twice.
package fakechaos
