// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package journal

import (
	"errors"
	"os"
	"time"
)

func lockFile(*os.File, time.Time) error {
	return errors.New("this system has no flock, without which two processes could write to one journal")
}
