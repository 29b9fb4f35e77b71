// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package filelock

import (
	"errors"
	"os"
)

// Try takes no lock: the system has none.
func Try(*os.File) (bool, error) { return false, errors.ErrUnsupported }

// TryShared takes no lock: the system has none.
func TryShared(*os.File) (bool, error) { return false, errors.ErrUnsupported }

// Unsupported reports whether an error of [Try] says that there are no such locks.
func Unsupported(err error) bool { return errors.Is(err, errors.ErrUnsupported) }
