// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pause

import "time"

// Between returns how long a wait pauses after a look that took a time: five times as long, and at least least. So a wait
// uses at most a sixth of a core, however expensive its look is. A look that starts a process takes half a second of a busy
// machine: a dozen waits of tests that looked for a third of their time kept two cores busy on their own.
func Between(took, least time.Duration) time.Duration { return max(least, min(5*took, longest)) }

// longest bounds how late a wait notices what it waits for.
const longest = 4 * time.Second
