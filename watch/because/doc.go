// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package because finds why a change happened: the run of a controller that made it, and what began the chain of runs that led
// there, in the records of the cluster's managers.
//
//	f := because.New(because.Options{Find: find, Words: format.Words})
//	go f.Run(ctx)
//	f.Fill(ctx, events) // sets the Cause of those events that the record explains
//
// # Time
//
// A change is seen by a watch at once, and is in the record when the run that made it has ended. [Finder.Fill] therefore asks
// again, for [Options].Within at most, and leaves the event without a cause then. Two rules keep changes fast that no controller of the
// managers makes. A change that was waited for in vain is asked for once more, [Later]: if the record has it by then, the run was late, and
// otherwise no manager that is asked records the field manager. Three such changes in a row are the last ones of that
// field manager that are waited for. And after an error, a manager is not asked for [Pause]; the others are.
//
// # Requests
//
// [Finder.Run] looks for managers every [LookEvery]. Without one, Fill sends no request. A batch of events leads to
// at most 32 requests to each manager, and the writes of a run that was found explain the other objects that it wrote.
package because
