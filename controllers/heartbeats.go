// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import "time"

// HeartbeatsGather is how long changes of Leases may wait before an informer reads them: see cache.Gathers. Each Node renews its Lease
// every ten seconds, and nothing that a controller decides from that is exact to a second. In a profile of a manager with all
// controllers and 1,000 Nodes at rest, reading each renewal alone, for two informers, was half of the CPU.
const HeartbeatsGather = 250 * time.Millisecond
