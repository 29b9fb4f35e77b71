// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/controlplane/metrics"
)

// An annotation states how a value goes over time.
func ExampleParseValue() {
	usage, err := metrics.ParseValue("100m..400m over 60s")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, age := range []time.Duration{0, 20 * time.Second, time.Hour} {
		fmt.Printf("after %s: %dm\n", age, usage.At(age))
	}

	_, err = metrics.ParseValue("lots")
	fmt.Println(err)
	// Output:
	// after 0s: 100m
	// after 20s: 200m
	// after 1h0m0s: 400m
	// "lots" is not a quantity such as "200m" or "64Mi"; use "200m", "100m..400m over 60s" or "100m..400m every 2m", each of them also with " shared" after it, or "none"
}
