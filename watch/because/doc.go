// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package because finds why a change happened: the run of a controller that made it, and what began the chain of runs that led
// there, in the record of the cluster's manager.
//
//	f := because.New(because.Options{Find: find, Words: format.Words})
//	go f.Run(ctx)
//	f.Fill(ctx, events) // sets the Cause of those events that the record explains
//
// # Time
//
// A change is seen by a watch at once, and is in the record when the run that made it has ended. [Finder.Fill] therefore asks
// again, for [Bound] at most, and leaves the event without a cause then. Two rules keep changes fast that no controller of the
// manager makes: field managers whose changes the record did not explain are asked for once, without a wait, for a minute at most, and after an
// error the manager is not asked for [Pause].
//
// # Requests
//
// [Finder.Run] looks for a manager every [LookEvery]. Without one, Fill sends no request. A batch of events leads to
// at most 32 requests, and the writes of a run that was found explain the other objects that it wrote.
package because
