// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"runtime/debug"
)

// contain runs f, and makes a panic of it an error. A page that cannot be read, because
// the disk fails, is a fault at an address in the mapped file; that is one of them.
func contain(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(before)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return f()
}
