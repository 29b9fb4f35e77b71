// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runs records what controllers did and why: each run with its causes, its waits, its outcome, its writes and
// the reasons that it stated. A manager has one [Record] for all of its controllers.
//
//	record, err := runs.New(runs.DefaultBytes)
//	...
//	c := controller.New("web", reconcile, controller.For(webs), controller.Runs(record))
//	...
//	found, more := record.Find(runs.Query{Object: runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}})
//
// [Record.Find] returns the runs for an object, [Record.Present] the reasons of the last run for each key, and
// [Record.Origins] the chain of causes of a run. A write of one run and the cause of another one are the same change
// if kind, UID and resourceVersion are equal.
//
// # What is recorded
//
// A loop adds a run when it has ended. The record has names, versions, times, codes, paths of fields and the text of
// errors. It has no values of fields.
//
// Runs that wrote nothing and ended alike are one [Run], which counts them: runs with the same error, runs that state
// the same reasons, and runs that changed nothing and had the same causes. Versions and times do not count.
//
// # What is kept
//
// The record is bounded in bytes, and takes memory as it fills. It has two parts. Runs that wrote, failed or stated
// reasons have three quarters of the memory, and those that changed nothing have the rest. Each part drops its oldest
// runs first, by the time of their last repetition. A run that changed nothing is dropped at the latest together with
// the runs of its time that wrote, failed or stated reasons. So such a run is never missing while an idle one that is
// older is there. [Record.Stats] has the time since when nothing is missing.
//
// # What survives the process
//
// A [File] keeps the record in files, in the background. [Record.Open] reads them when the process begins again.
//
// # What it costs
//
// Entries are encoded in slices of bytes, in which the garbage collector finds no pointers. The index that finds the
// runs of a key, of an object, and the write that made a version is a part of these bytes. Adding a run that changed
// nothing takes some 100 ns and allocates nothing.
package runs
