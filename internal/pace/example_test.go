// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pace_test

import (
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/internal/pace"
)

func ExamplePace() {
	p := pace.Pace[string]{Pause: 100 * time.Millisecond}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	fmt.Println("before a write:", p.Left("node-1", now))
	p.Wrote("node-1", now)
	fmt.Println("30 ms after it:", p.Left("node-1", now.Add(30*time.Millisecond)))
	fmt.Println("of another key:", p.Left("node-2", now.Add(30*time.Millisecond)))
	fmt.Println("after the pause:", p.Left("node-1", now.Add(200*time.Millisecond)) <= 0)
	p.Forget("node-1")
	fmt.Println("of a key that is gone:", p.Left("node-1", now))
	// Output:
	// before a write: 0s
	// 30 ms after it: 70ms
	// of another key: 0s
	// after the pause: true
	// of a key that is gone: 0s
}
