// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// prices tells what calls cost where CEL's own prices are by the number of arguments and
// not by their size, or ten times what texts take. With it no call is cheaper than what it
// takes; together with the bounds in functions.go, which hold before a call, an evaluation
// ends in time.
type prices struct{}

// CallCost returns the price of a call, or nil for CEL's own.
func (prices) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	left := costLimit + 1 // nothing larger is told apart
	switch function {
	case overloads.Size:
		if s, ok := args[0].(types.String); ok { // it counts the characters
			left -= weight(s, left)
		}
	case overloads.Matches:
		pattern := len(str(args[1]))/4 + 1
		left -= min(weight(args[0], left)*pattern, left)
	case operators.Equals, operators.NotEquals, operators.In, operators.OldIn, operators.Add,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
		overloads.Contains, overloads.StartsWith, overloads.EndsWith:
		left -= weights(args, left)
	case "sets.contains", "sets.equivalent", "sets.intersects":
		left -= weights(args, left)
		left -= min(work(args[0], args[1]), left)
	case "distinct":
		left -= min(work(args[0], args[0]), left)
	default:
		if !isOurs(function) {
			return nil
		}
		left -= weights(args, left)
		left -= weight(result, left)
	}
	cost := 1 + uint64(costLimit+1-left)
	return &cost
}

func weights(values []ref.Val, limit int) int {
	total := 0
	for _, v := range values {
		total += weight(v, limit-total)
	}
	return total
}

func length(v ref.Val) int {
	if l, ok := v.(traits.Sizer); ok {
		if n, ok := l.Size().(types.Int); ok {
			return int(n)
		}
	}
	return 1
}

// weight is how much work it is to look at all of a value: one for each value in it, and
// one for a hundred bytes of text. It stops at a limit.
func weight(v any, limit int) int {
	if limit <= 0 {
		return 0
	}
	total := 1
	each := func(v any) bool {
		total += weight(v, limit-total)
		return total < limit
	}
	switch v := v.(type) {
	case string:
		total += len(v) / 100
	case types.String:
		total += len(v) / 100
	case types.Bytes:
		total += len(v) / 100
	case map[string]any:
		for _, value := range v {
			if !each(value) {
				break
			}
		}
	case []any:
		for _, value := range v {
			if !each(value) {
				break
			}
		}
	case traits.Iterable: // the lists and maps of CEL
		total += elements(v, limit-total)
	}
	return min(total, limit)
}

// elements is the weight of what a list or a map of CEL holds.
func elements(v traits.Iterable, limit int) int {
	total := 0
	m, isMap := v.(traits.Mapper)
	for it := v.Iterator(); it.HasNext() == types.True && total < limit; {
		next := it.Next()
		total += weight(next, limit-total)
		if isMap {
			total += weight(m.Get(next), limit-total)
		}
	}
	return total
}
