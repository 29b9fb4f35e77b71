// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"testing"
)

func TestThatTheStartFailedIsSaidOnce(t *testing.T) {
	for said, want := range map[string]string{
		"starting the control plane: port in use": "starting the control plane: port in use",
		"exit status 2": "starting the control plane: exit status 2",
	} {
		if got := notStarted(errors.New(said)).Error(); got != want {
			t.Errorf("of %q it makes %q", said, got)
		}
	}
}
