// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery follows which kinds a server serves. Custom resource definitions and
// aggregated servers add kinds, remove them, and serve them in other versions.
//
// A [Set] holds the kinds as the last discoveries found them. A discovery may fail in
// part: while an aggregated server does not answer, the API server does not know its
// kinds. Such kinds are stale. They stay in the set as they were, and [Set.Unknown] says
// why, so that one server that is away does not stop the work on all kinds.
//
// A [Follower] discovers again and again, and sooner after [Follower.Soon]. [Ask] bounds the
// time of one discovery.
//
// # Users
//
//   - The garbage collector has a Follower and acts on the differences of its sets. A
//     controller of ResourceQuotas needs the same.
//   - The watch of package watch keeps a Set, with a loop of its own. How soon it discovers
//     again depends on what it has found: a kind that a user has named and that is not served
//     yet, or an informer that fails, is looked for more often. An error of its journal ends
//     the loop.
//   - The namespace controller has neither, and only calls [Once]. It must not forget a kind
//     that was defined a moment ago, as objects of that kind would outlive their namespace:
//     each run asks the server itself. And a stale kind must not count as a known one: where a
//     part of the discovery fails, the namespace stays, and its condition says why.
package discovery
