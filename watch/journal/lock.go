// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/setpoint-io/setpoint/internal/filelock"
)

// lockPoll is how often a lock that somebody has is asked for again.
const lockPoll = 20 * time.Millisecond

// lockFile locks an open file until it is closed, and asks again until the deadline.
func lockFile(f *os.File, deadline time.Time) error {
	for {
		switch locked, err := filelock.Try(f); {
		case errors.Is(err, errors.ErrUnsupported):
			return fmt.Errorf("locking it: %w; without locks two processes could write to one journal", err)
		case err != nil:
			return fmt.Errorf("locking it: %w", err)
		case locked:
			return nil
		case !time.Now().Before(deadline):
			return ErrLocked
		}
		time.Sleep(lockPoll)
	}
}
