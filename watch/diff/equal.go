// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"math"
	"reflect"
)

// Equal reports whether two values are the same, as the package counts it.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case nil:
		return b == nil
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && equalMaps(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && equalLists(a, b)
	}
	ai, af, ak := number(a)
	bi, bf, bk := number(b)
	switch {
	case ak == noNumber && bk == noNumber:
		return reflect.DeepEqual(a, b)
	case ak == whole && bk == whole:
		return ai == bi
	case ak == fraction && bk == fraction:
		return af == bf || math.IsNaN(af) && math.IsNaN(bf)
	}
	return false // number has made whole what is whole
}

func equalMaps(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		w, ok := b[k]
		if !ok || !Equal(v, w) {
			return false
		}
	}
	return true
}

func equalLists(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i, v := range a {
		if !Equal(v, b[i]) {
			return false
		}
	}
	return true
}

// numberKind says how a number is held.
type numberKind uint8

const (
	noNumber numberKind = iota
	whole
	fraction
)

// number reads a number. One that is an int64 in value is whole, whatever its type, and
// its float is there too.
func number(v any) (int64, float64, numberKind) {
	switch v := v.(type) {
	case int64:
		return v, float64(v), whole
	case int:
		return int64(v), float64(v), whole
	case int32:
		return int64(v), float64(v), whole
	case float64:
		// 2^63 is the first float beyond int64; the conversion would not be defined.
		if v == math.Trunc(v) && v >= math.MinInt64 && v < math.MaxInt64 {
			return int64(v), v, whole
		}
		return 0, v, fraction
	case float32:
		return number(float64(v))
	}
	return 0, 0, noNumber
}

// identity returns a value that a Go map can have as key, the same one for equal scalars.
// There is none for objects, lists and what is not equal to itself.
func identity(v any) (any, bool) {
	switch v := v.(type) {
	case string, bool, nil:
		return v, true
	}
	switch i, f, kind := number(v); kind {
	case whole:
		return i, true
	case fraction:
		return f, !math.IsNaN(f)
	case noNumber:
	}
	return nil, false
}
