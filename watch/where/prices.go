// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// errTooLarge is the result of a call that is refused before it is made.
var errTooLarge = errors.New("the arguments are too large")

// prices are the costs of calls. cel-go prices most calls by the number of their arguments and
// not by their size, and every call after it was made. Here the price of a call is the size
// of its arguments and of its result, or its work where that is more.
type prices struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (prices) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	cost := uint64(1)
	if !free(function, args) {
		cost += uint64(before(function, args) + weight(result, costLimit))
	}
	return &cost
}

// free reports whether a call does not read its arguments. The size of a text is not
// free: counting its characters is reading it.
func free(function string, args []ref.Val) bool {
	switch function {
	case overloads.Size:
		_, isText := args[0].(types.String)
		return !isText
	case overloads.TypeConvertType, overloads.TypeConvertDyn, "optional.of", "hasValue", "value", "or", "orValue":
		return true
	}
	return false
}

// before is what a call costs without its result, as far as costLimit.
func before(function string, args []ref.Val) int {
	price := 0
	for _, arg := range args {
		price += weight(arg, costLimit)
	}
	if work := works[function]; work != nil && price < costLimit {
		price += work(args)
	}
	return price
}

// works has the functions that do more than to read their arguments once, or whose result
// can be far larger than these. Work and weight have the same unit.
var works = map[string]func(args []ref.Val) int{
	overloads.Matches: func(args []ref.Val) int { return weight(args[0], costLimit) * (patterns.size(text(args[1])) / 4) },
	"replace": func(args []ref.Val) int {
		return strings.Count(text(args[0]), text(args[1])) * len(text(args[2])) / bytesOfText
	},
	"join": func(args []ref.Val) int {
		if len(args) < 2 {
			return 0
		}
		return size(args[0]) * len(text(args[1])) / bytesOfText
	},
	"indexOf": search, "lastIndexOf": search,
	"flatten":       func([]ref.Val) int { return 0 }, // what comes out has been in the argument
	"distinct":      func(args []ref.Val) int { return weight(args[0], costLimit) * size(args[0]) },
	"sets.contains": pairs, "sets.equivalent": pairs, "sets.intersects": pairs,
	"lists.range": func(args []ref.Val) int {
		n, _ := args[0].(types.Int)
		return int(min(n, costLimit))
	},
}

// patterns are those of all conditions.
var patterns machines

// search is the work of finding a text in another, which cel-go does character by character.
func search(args []ref.Val) int { return weight(args[0], costLimit) * (len(text(args[1])) / 10) }

// pairs is the work of comparing each element of a list with each of another one.
func pairs(args []ref.Val) int {
	return weight(args[0], costLimit)*size(args[1]) + weight(args[1], costLimit)*size(args[0])
}

// bounded is a decorator of programs: a call of a function in works that alone would cost more
// than a whole evaluation may is not made, since the limit of cost stops an evaluation only
// after a call, also after one that was not made.
func bounded(env *cel.Env) interpreter.InterpretableDecorator {
	return func(i interpreter.Interpretable) (interpreter.Interpretable, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok || works[call.Function()] == nil {
			return i, nil
		}
		do, err := binding(env, call)
		if err != nil {
			return nil, err
		}
		return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
			if before(call.Function(), args) >= costLimit {
				return types.WrapErr(fmt.Errorf("calling %s: %w", call.Function(), errTooLarge))
			}
			return do(args...)
		}), nil
	}
}

// binding returns what a call calls.
func binding(env *cel.Env, call interpreter.InterpretableCall) (functions.FunctionOp, error) {
	all, err := env.Functions()[call.Function()].Bindings()
	if err != nil {
		return nil, err
	}
	var found *functions.Overload
	for _, o := range all {
		if o.Operator == call.OverloadID() || o.Operator == call.Function() && found == nil {
			found = o
		}
	}
	return func(args ...ref.Val) ref.Val {
		switch {
		case found == nil:
		case len(args) == 1 && found.Unary != nil:
			return found.Unary(args[0])
		case len(args) == 2 && found.Binary != nil:
			return found.Binary(args[0], args[1])
		case found.Function != nil:
			return found.Function(args...)
		}
		return types.MaybeNoSuchOverloadErr(args[0])
	}, nil
}

func text(v ref.Val) string { s, _ := v.(types.String); return string(s) }

func size(v ref.Val) int {
	if l, ok := v.(traits.Lister); ok {
		n, _ := l.Size().(types.Int)
		return int(n)
	}
	return 1
}

// bytesOfText is how many bytes of a text weigh as much as one other value.
const bytesOfText = 100

// weight is how much there is to read in a value: one for each value in it, and one for each
// bytesOfText of text. It stops at a limit.
func weight(v ref.Val, limit int) int {
	total := 1
	switch v := v.(type) {
	case types.String:
		total += len(v) / bytesOfText
	case types.Bytes:
		total += len(v) / bytesOfText
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True && total < limit; {
			total += weight(it.Next(), limit-total)
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True && total < limit; {
			key := it.Next()
			total += weight(key, limit-total) + weight(v.Get(key), limit-total)
		}
	}
	return total
}
