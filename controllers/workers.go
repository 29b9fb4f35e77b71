// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import "fmt"

// CheckWorkers returns an error for a number of workers that does no work.
func CheckWorkers(n int) error {
	if n < 1 {
		return fmt.Errorf("%d workers; want 1 or more", n)
	}
	return nil
}
