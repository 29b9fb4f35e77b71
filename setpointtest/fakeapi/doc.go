// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is an API server in memory, for unit tests of controllers and other
// clients.
//
// A [Server] serves the resources that a test names. A client reaches it with
// [Server.Config], within the process and without a network, so it works in a bubble of
// testing/synctest, where an hour passes at once. [Server.Listen] has it listen on the
// loopback interface, too.
//
//	api := fakeapi.New()
//	websites := api.Serve(website.Resource, fakeapi.WithStatus())
//	err := websites.Add(site)
//	mgr, err := manager.New(api.Config())
//
// TestAControllerIsTestedWithoutACluster, in controller_test.go, is a whole test of a
// controller.
//
// # What it does as a real server
//
// Creates, updates, patches of all four sorts, deletes, deletecollections, lists with
// pages, selectors and versions, and watches with bookmarks and initial events answer with
// the codes, the reasons, the messages and the objects of a kube-apiserver. All resources
// share one sequence of resourceVersions. Conflicts, generated names, UIDs, generations,
// finalizers, grace periods, preconditions, dry runs, field managers and the subresources
// status, scale and finalize follow the same rules. A watch that begins before
// [Server.Compact] gets 410 Gone. Objects travel as JSON or protobuf, or as their metadata
// alone. A test sends the same requests to this server and to a real one, and compares the
// answers.
//
// # What it does not do
//
//   - No controller runs: owner references are stored and nothing is collected, a Pod gets
//     no node and no kubelet, a Namespace that is deleted keeps its objects.
//   - Nothing is defaulted, and of an object only its metadata is validated. Built-in kinds
//     lose fields that their Go type does not have; custom kinds have no schema.
//   - There is no authentication, no authorization and no admission. A test refuses
//     requests itself, with Before.
//   - The owners of fields are tracked from the first server-side apply of an object on.
//     What was there before is owned by "before-first-apply".
//   - Other subresources, such as eviction, answer 501 Not Implemented. A test can answer
//     for them in Before. There are no Tables and no CBOR.
//
// How a cluster behaves as a whole is for a test against a real one.
//
// # What a test can do
//
// [Server.Serve] returns a [Resource]. Its Add, Put, Remove and Get reach the objects
// without a request and without the rules for clients: Put can write a status, or what no
// client could read. [Read], [Objects] and [Change] do so with Go types.
//
// [Faults] are what goes wrong on demand: requests that are refused, answers that are lost
// after the write was made, latency, and watches that lag or are held, so that caches fall
// behind.
// Those of the server concern all requests, those of a Resource its own.
// [Server.CutConnections] breaks what is open, [Server.Compact] forgets history, and
// [Server.Restore] goes back to a backup.
//
// [Server.Calls] and [Server.Requests] return the requests.
package fakeapi
