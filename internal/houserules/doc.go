// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package houserules holds the rules of this repository that no compiler holds,
// and its tests apply them to the repository itself. A rule that is only written
// down is broken within a month; one that fails a test is kept or changed openly.
//
// Each exported function checks one group of rules and returns what breaks
// them, one sentence each: where, what is wrong, and what to do about it.
//
//   - [Layers] reads the table of packages in ARCHITECTURE.md, and so the text
//     that people read is the one that counts. Imports go only downwards in it,
//     no controller imports another, and every package stands in it.
//   - [Examples] holds that examples import only what every user can.
//   - [Peers] keeps out what this project replaces: client-go's caches,
//     informers, listers and work queue, and all of k8s.io/kubernetes.
//   - [Connections] lets only the packages that may talk to a network use the
//     packages that can.
//   - [Process] leaves flags, environment, standard streams, signals and the
//     exit of the process to package main.
//   - [Module] keeps the root module light, and [Installable] every module with commands
//     installable by `go install`.
//   - [Tables] finds rows of Markdown tables that an empty line has cut off.
//   - [Workspaces] has go commands work in the folder of each module.
//   - [Dependencies] wants a reason for each module that we depend on.
//   - [Documentation] wants a doc.go in every package, and an example that runs in every
//     package that users import.
//   - [Headers] wants the licence in every source file, and [Texts] keeps paths of a
//     developer's machine and hosts of private registries out of all files.
//
// A package whose name ends in "test" or starts with "fake", such as
// net/http/httptest, serves tests alone. It may do what tests do, and no package
// that is shipped may import it; [TestOnly] holds that.
//
// A package below internal/ may use connections and the process only if all that import it
// may: then it is a part of them.
//
// That each rule can fail is shown by testdata/bad, a small module that breaks
// them all, and testdata/bad.golden, which says what is found in it.
package houserules
