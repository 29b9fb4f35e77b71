// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

// The delay of a key that keeps failing doubles up to the longest one.
func ExampleBackoff() {
	limiter := workqueue.Backoff[string](time.Second, 5*time.Second)
	for range 4 {
		fmt.Println(limiter.When("web"))
	}
	limiter.Forget("web")
	fmt.Println("after a success:", limiter.When("web"))
	// Output:
	// 1s
	// 2s
	// 4s
	// 5s
	// after a success: 1s
}
