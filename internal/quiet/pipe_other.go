// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || race || msan || asan

package quiet

import "os"

// Pipe writes nothing: an ordinary write does.
type Pipe struct{}

// NewPipe returns a Pipe.
func NewPipe(*os.File) *Pipe { return &Pipe{} }

// Write writes nothing.
func (*Pipe) Write([]byte) int { return 0 }
