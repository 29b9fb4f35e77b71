// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery follows which kinds a server serves. Custom resource definitions and
// aggregated servers add kinds, remove them, and serve them in other versions.
//
// A [Set] holds the kinds as the last discoveries found them. A discovery may fail in
// part: while an aggregated server is away, the API server does not say which kinds it
// has. Such kinds are stale. They stay in the set as they were, and [Set.Unknown] says
// why, so that one server that is away does not stop the work on all kinds.
//
// A [Follower] asks the server again and again, and sooner when it is told that
// something has changed.
package discovery
