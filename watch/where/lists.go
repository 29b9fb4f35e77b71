// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// kubernetesLists are the functions on lists that Kubernetes' policies have and cel-go does
// not. k8s.io/apiserver has them, with all that an API server needs.
// Source: https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-list-library.
func kubernetesLists() []cel.EnvOption {
	list := cel.ListType(cel.DynType)
	one := func(name, id string, result *cel.Type, do func(list []ref.Val) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload(id, []*cel.Type{list}, result,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return do(elements(v)) })))
	}
	find := func(name, id string, better func(at, found int) bool) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload(id, []*cel.Type{list, cel.DynType}, cel.IntType,
			cel.BinaryBinding(func(v, wanted ref.Val) ref.Val {
				found := -1
				for at, element := range elements(v) {
					if element.Equal(wanted) == types.True && (found < 0 || better(at, found)) {
						found = at
					}
				}
				return types.Int(found)
			})))
	}
	return []cel.EnvOption{
		one("isSorted", "list_is_sorted", cel.BoolType, isSorted),
		one("sum", "list_sum", cel.DynType, sum),
		one("min", "list_min", cel.DynType, func(list []ref.Val) ref.Val { return extreme(list, types.IntNegOne) }),
		one("max", "list_max", cel.DynType, func(list []ref.Val) ref.Val { return extreme(list, types.IntOne) }),
		find("indexOf", "list_index_of", func(at, found int) bool { return at < found }),
		find("lastIndexOf", "list_last_index_of", func(at, found int) bool { return at > found }),
	}
}

// elements returns the elements of a list; of anything else none.
func elements(v ref.Val) []ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return nil
	}
	var all []ref.Val
	for it := list.Iterator(); it.HasNext() == types.True; {
		all = append(all, it.Next())
	}
	return all
}

// compare returns -1, 0 or 1 as a number of CEL, or an error if the two have no order.
func compare(a, b ref.Val) ref.Val {
	c, ok := a.(traits.Comparer)
	if !ok {
		return types.MaybeNoSuchOverloadErr(a)
	}
	return c.Compare(b)
}

func isSorted(list []ref.Val) ref.Val {
	for i := 1; i < len(list); i++ {
		switch c := compare(list[i-1], list[i]); {
		case types.IsUnknownOrError(c):
			return c
		case c == types.IntOne:
			return types.False
		}
	}
	return types.True
}

func sum(list []ref.Val) ref.Val {
	if len(list) == 0 {
		return types.IntZero
	}
	total := list[0]
	for i, v := range list {
		switch v.(type) {
		case types.Int, types.Uint, types.Double, types.Duration:
		default:
			return types.NewErr("no such overload: sum() of something that is not a number")
		}
		if adder, ok := total.(traits.Adder); ok && i > 0 {
			total = adder.Add(v)
		}
	}
	return total // an error, if the sum does not fit or the types differ
}

// extreme returns the element that compares as sign with every other one.
func extreme(list []ref.Val, sign types.Int) ref.Val {
	if len(list) == 0 {
		return types.NewErr("an empty list has neither a least nor a greatest element")
	}
	best := list[0]
	for _, v := range list[1:] {
		switch c := compare(v, best); {
		case types.IsUnknownOrError(c):
			return c
		case c == sign:
			best = v
		}
	}
	return best
}
