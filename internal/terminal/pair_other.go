// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package terminal

import (
	"errors"
	"os"
)

func pair(_, _ int) (person, program *os.File, err error) {
	return nil, nil, errors.New("opening a pseudo-terminal: only those of Linux are known here")
}
