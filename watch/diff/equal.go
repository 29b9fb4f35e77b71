// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"maps"
	"math"
	"reflect"
	"slices"
)

// Equal reports whether two values of JSON are the same: numbers by their value, objects and
// lists by what is in them.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && (sameMap(a, b) || maps.EqualFunc(a, b, Equal))
	case []any:
		b, ok := b.([]any)
		return ok && (sameList(a, b) || slices.EqualFunc(a, b, Equal))
	}
	x, ok := identity(a)
	if !ok {
		return isNaN(a) && isNaN(b)
	}
	y, ok := identity(b)
	return ok && x == y
}

// isSame reports whether two values are equal as far as can be seen without looking into them.
func isSame(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && a == b
	case int64:
		b, ok := b.(int64)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && sameMap(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && sameList(a, b)
	}
	return false
}

// sameMap reports whether two maps are one, which states that were decoded together have where they are equal.
func sameMap(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// sameList reports whether two lists are one.
func sameList(a, b []any) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

func isNaN(v any) bool {
	f, ok := v.(float64)
	return ok && math.IsNaN(f)
}

// identity returns a scalar in the form in which equal ones are the same key of a map: a
// string, a bool, nil, an int64, or a float64 that is no int64 by its value. Objects, lists and
// NaN have none.
func identity(v any) (id any, ok bool) {
	switch n := v.(type) {
	case string, bool, nil, int64:
		return v, true
	case int:
		return int64(n), true
	case float64:
		// 2^63 is the first float beyond int64; the conversion would not be defined.
		if n == math.Trunc(n) && n >= math.MinInt64 && n < math.MaxInt64 {
			return int64(n), true
		}
		return n, !math.IsNaN(n)
	}
	return nil, false
}
