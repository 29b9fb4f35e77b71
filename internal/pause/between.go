// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pause

import "time"

// Between returns how long a wait pauses after a look that took a time: twice as long, and at least least. So a wait
// uses at most a third of a core, however expensive its look is. A look that starts a process takes half a second of a busy
// machine, and waits of several tests that looked every 10 ms kept it busy on their own.
func Between(took, least time.Duration) time.Duration { return max(least, min(2*took, longest)) }

// longest bounds how late a wait notices what it waits for.
const longest = 3 * time.Second
