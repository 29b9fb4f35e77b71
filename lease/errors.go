// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"
)

var (
	// ErrReleased is why a term ended that Release ended.
	ErrReleased = errors.New("the lease has been released")

	// ErrExpired is why a term ended whose lease could not be renewed in time.
	ErrExpired = errors.New("the lease could not be renewed in time")
)

// TakenError is why a term ended whose lease somebody else has.
type TakenError struct {
	Holder string // empty: somebody released it, by hand
}

func (e *TakenError) Error() string {
	if e.Holder == "" {
		return "the lease was taken away from its holder"
	}
	return fmt.Sprintf("the lease was taken by %q", e.Holder)
}
