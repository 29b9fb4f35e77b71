// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podload

import "runtime"

// Heap returns the bytes of the heap that are in use.
func Heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
