// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managers asks the managers of a cluster what their loops do, and what their controllers did and why: the manager
// of this process, if there is one, and those that have announced themselves on Leases.
//
//	all := managers.New(managers.Options{Client: c, Config: config})
//	states := all.Overviews(ctx)
//	facts, err := gather.Gatherer{Client: c, Record: all.Record(ctx)}.Facts(ctx, resource, key)
//
// The managers are asked at the same time, with the client certificate of the configuration. A manager that does not answer
// is named. It is not asked again for some seconds, so that it costs each view of a page its patience once.
package managers
