// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"
)

var (
	// errReleased is the cause of a term that Release ended.
	errReleased = errors.New("the lease has been released")

	// ErrExpired is the cause of a term whose lease could not be renewed in time.
	ErrExpired = errors.New("the lease could not be renewed in time")
)

// takenError is the cause of a term whose lease another process has.
type takenError struct {
	holder string // empty: a user released the lease by hand
}

func (e *takenError) Error() string {
	if e.holder == "" {
		return "the lease was taken away from its holder"
	}
	return fmt.Sprintf("the lease was taken by %q", e.holder)
}
