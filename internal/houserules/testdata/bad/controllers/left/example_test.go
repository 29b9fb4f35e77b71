// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package left_test

import (
	"fmt"

	_ "k8s.io/client-go/tools/cache"
)

func Example() {
	fmt.Println("checked")
	// Output: checked
}
