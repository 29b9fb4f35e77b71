// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// mostWork is how many values a function may look at that compares each element with each.
const mostWork = costLimit

// largestList is how many elements a list may have that a function makes.
const largestList = 100_000

// listFunctions work on lists.
func listFunctions() []member {
	list, number := cel.ListType(cel.DynType), cel.IntType
	var found []member
	add := func(name, id string, args []*cel.Type, result *cel.Type, do func(args ...ref.Val) ref.Val) {
		found = append(found, member{name: name, id: id, args: args, result: result, do: do})
	}
	one := []*cel.Type{list}
	add("isSorted", "list_is_sorted", one, cel.BoolType, isSorted)
	add("sum", "list_sum", one, cel.DynType, sum)
	add("min", "list_min", one, cel.DynType, func(args ...ref.Val) ref.Val { return extreme("min", args[0], -1) })
	add("max", "list_max", one, cel.DynType, func(args ...ref.Val) ref.Val { return extreme("max", args[0], 1) })
	add("indexOf", "list_index_of", []*cel.Type{list, cel.DynType}, number, func(args ...ref.Val) ref.Val {
		for i, v := range elementsOf(args[0]) {
			if v.Equal(args[1]) == types.True {
				return types.Int(i)
			}
		}
		return types.Int(-1)
	})
	add("lastIndexOf", "list_last_index_of", []*cel.Type{list, cel.DynType}, number, func(args ...ref.Val) ref.Val {
		last := -1
		for i, v := range elementsOf(args[0]) {
			if v.Equal(args[1]) == types.True {
				last = i
			}
		}
		return types.Int(last)
	})
	add("distinct", "list_distinct", one, list, distinct)
	add("flatten", "list_flatten", one, list, flatten)
	add("slice", "list_slice", []*cel.Type{list, number, number}, list, slice)
	return found
}

// elementsOf returns the elements of a list; of anything else none.
func elementsOf(v ref.Val) []ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return nil
	}
	found := make([]ref.Val, 0, length(list))
	for it := list.Iterator(); it.HasNext() == types.True; {
		found = append(found, it.Next())
	}
	return found
}

func listOf(elements []ref.Val) ref.Val {
	return types.NewRefValList(types.DefaultTypeAdapter, elements)
}

// compare returns -1, 0 or 1 as a number of CEL, or an error if the two have no order.
func compare(a, b ref.Val) ref.Val {
	c, ok := a.(traits.Comparer)
	if !ok {
		return types.MaybeNoSuchOverloadErr(a)
	}
	return c.Compare(b)
}

func isSorted(args ...ref.Val) ref.Val {
	list := elementsOf(args[0])
	for i := 1; i < len(list); i++ {
		switch c := compare(list[i-1], list[i]); c {
		case types.IntOne:
			return types.False
		default:
			if types.IsUnknownOrError(c) {
				return c
			}
		}
	}
	return types.True
}

func sum(args ...ref.Val) ref.Val {
	list := elementsOf(args[0])
	if len(list) == 0 {
		return types.Int(0)
	}
	total := list[0]
	for i, v := range list {
		switch v.(type) {
		case types.Int, types.Uint, types.Double, types.Duration:
		default:
			return types.NewErr("sum() of something that is not a number")
		}
		if adder, ok := total.(traits.Adder); ok && i > 0 {
			total = adder.Add(v)
		}
	}
	return total // an error, if the sum does not fit or the types differ
}

func extreme(name string, v ref.Val, sign types.Int) ref.Val {
	list := elementsOf(v)
	if len(list) == 0 {
		return types.NewErr("%s() of an empty list", name)
	}
	best := list[0]
	for _, v := range list[1:] {
		c := compare(v, best)
		if types.IsUnknownOrError(c) {
			return c
		}
		if c == sign {
			best = v
		}
	}
	return best
}

// work is at most how many values are looked at if each element of a list is compared with
// each of another one.
func work(a, b ref.Val) int { return weight(a, mostWork+1) * length(b) }

func has(list []ref.Val, v ref.Val) bool {
	for _, other := range list {
		if other.Equal(v) == types.True {
			return true
		}
	}
	return false
}

func distinct(args ...ref.Val) ref.Val {
	list := elementsOf(args[0])
	if work(args[0], args[0]) > mostWork {
		return tooLarge("the work of distinct()")
	}
	var found []ref.Val
	for _, v := range list {
		if !has(found, v) {
			found = append(found, v)
		}
	}
	return listOf(found)
}

// flatten takes the lists in a list apart, one level deep.
func flatten(args ...ref.Val) ref.Val {
	var found []ref.Val
	for _, v := range elementsOf(args[0]) {
		if inner, ok := v.(traits.Lister); !ok {
			found = append(found, v)
		} else if len(found)+length(inner) <= largestList {
			found = append(found, elementsOf(inner)...)
		} else {
			return tooLarge("the result of flatten()")
		}
	}
	return listOf(found)
}

func slice(args ...ref.Val) ref.Val {
	list, from, to := elementsOf(args[0]), num(args[1]), num(args[2])
	if from < 0 || to < from || to > len(list) {
		return types.NewErr("slice(%d, %d) of a list of %d", from, to, len(list))
	}
	return listOf(list[from:to])
}

// setFunctions compare lists as sets: order and repetitions do not count.
func setFunctions() map[string]func(args ...ref.Val) ref.Val {
	within := func(all, some []ref.Val) bool {
		for _, v := range some {
			if !has(all, v) {
				return false
			}
		}
		return true
	}
	bounded := func(ask func(a, b []ref.Val) bool) func(args ...ref.Val) ref.Val {
		return func(args ...ref.Val) ref.Val {
			if work(args[0], args[1]) > mostWork {
				return tooLarge("the work of comparing two sets")
			}
			return types.Bool(ask(elementsOf(args[0]), elementsOf(args[1])))
		}
	}
	return map[string]func(args ...ref.Val) ref.Val{
		"sets.contains":   bounded(within),
		"sets.equivalent": bounded(func(a, b []ref.Val) bool { return within(a, b) && within(b, a) }),
		"sets.intersects": bounded(func(a, b []ref.Val) bool {
			for _, v := range b {
				if has(a, v) {
					return true
				}
			}
			return false
		}),
	}
}
