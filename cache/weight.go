// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"reflect"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// weights estimates the memory of the decoded objects of one informer: the size of their Go struct,
// and the size of their encoding times a factor. The factor is measured on some of them, because
// it differs from kind to kind: 2 for ConfigMaps, 4 for Pods, more for unstructured objects.
type weights struct {
	seen     atomic.Uint64
	encoded  atomic.Int64 // bytes of the objects that were measured
	measured atomic.Int64 // what they take beyond their struct
}

// Which objects are measured: the first ones, and then one of many.
const (
	measuredFirst = 16
	measuredEvery = 256
)

// of returns the estimate for an object whose encoding has that many bytes.
func (w *weights) of(o object.Object, encoded int) int64 {
	v := reflect.ValueOf(o).Elem()
	shell := rounded(int(v.Type().Size()))
	if n := w.seen.Add(1); n <= measuredFirst || n%measuredEvery == 0 {
		steps := walkMost
		below := sizeBelow(v, &steps)
		w.encoded.Add(int64(encoded))
		w.measured.Add(int64(below))
		return int64(shell + below)
	}
	// The two are not read at one moment. The factor is hardly wrong for it.
	return int64(shell) + int64(float64(encoded)*float64(w.measured.Load())/float64(max(w.encoded.Load(), 1)))
}

// walkMost is how many values of an object are measured. Objects of the API have no loops; a type of
// the program might.
const walkMost = 100_000

// sizeBelow returns the memory that a value refers to.
func sizeBelow(v reflect.Value, steps *int) int {
	if *steps--; *steps < 0 {
		return 0
	}
	switch v.Kind() { //nolint:exhaustive // the others refer to nothing
	case reflect.String:
		return rounded(v.Len())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() || v.Elem().Kind() == reflect.Bool {
			return 0 // there is one true and one false, or next to nothing
		}
		return rounded(int(v.Elem().Type().Size())) + sizeBelow(v.Elem(), steps)
	case reflect.Slice:
		size := rounded(v.Cap() * int(v.Type().Elem().Size()))
		if refers(v.Type().Elem()) {
			for i := range v.Len() {
				size += sizeBelow(v.Index(i), steps)
			}
		}
		return size
	case reflect.Map:
		return sizeOfMap(v, steps)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return 0 // the location is the program's
		}
		size := 0
		for _, field := range v.Fields() {
			size += sizeBelow(field, steps)
		}
		return size
	}
	return 0
}

// refers reports whether values of a type may refer to memory.
func refers(t reflect.Type) bool {
	return t.Kind() >= reflect.Array && t.Kind() != reflect.UnsafePointer
}

// Go's maps have groups of eight places, and are full at seven eighths.
// Source: internal/runtime/maps.
const (
	mapHeader    = 48
	mapGroup     = 8
	mapGroupHead = 8
)

func sizeOfMap(v reflect.Value, steps *int) int {
	if v.IsNil() {
		return 0
	}
	places := mapGroup
	for v.Len() > mapGroup && places*7/8 < v.Len() {
		places *= 2
	}
	each := int(v.Type().Key().Size() + v.Type().Elem().Size())
	size := mapHeader + rounded(places*each+places/mapGroup*mapGroupHead)
	tree := v.Type().Elem().Kind() == reflect.Interface // whose decoder has one copy of the name of a field
	for entries := v.MapRange(); entries.Next(); {
		if !tree {
			size += sizeBelow(entries.Key(), steps)
		}
		size += sizeBelow(entries.Value(), steps)
	}
	return size
}

// rounded returns about what the allocator takes for that many bytes: its sizes are 16 bytes apart
// at first, and then an eighth of themselves.
func rounded(size int) int {
	if size <= 8 {
		return size
	}
	step := max(16, size/8&^15)
	return (size + step - 1) / step * step
}
