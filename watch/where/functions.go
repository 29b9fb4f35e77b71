// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// largestText is how long a text may become that a function makes, in bytes: the size that
// an API server takes for a whole object, and half of it again.
const largestText = 2 << 20

// member is one overload of a function that is called on its first argument.
type member struct {
	name   string
	id     string
	args   []*cel.Type
	result *cel.Type
	do     func(args ...ref.Val) ref.Val
}

// ours are the functions beside those of CEL itself. They do what cel-go's own extensions
// of the same names do, which are not used because they take memory and time without
// bounds before anybody can ask what they cost.
// Sources: https://pkg.go.dev/github.com/google/cel-go/ext and
// https://kubernetes.io/docs/reference/using-api/cel/.
func ours() []member { return append(textFunctions(), listFunctions()...) }

func functions() []cel.EnvOption {
	var options []cel.EnvOption
	for _, m := range ours() {
		options = append(options, cel.Function(m.name, cel.MemberOverload(m.id, m.args, m.result, cel.FunctionBinding(m.do))))
	}
	list := cel.ListType(cel.DynType)
	for name, do := range setFunctions() {
		options = append(options, cel.Function(name, cel.Overload(name+"_list", []*cel.Type{list, list}, cel.BoolType,
			cel.FunctionBinding(do))))
	}
	return options
}

func isOurs(function string) bool { return slices.Contains(functionNames(), function) }

// functionNames returns the names of our functions, each once.
func functionNames() []string {
	return []string{
		"charAt", "indexOf", "lastIndexOf", "join", "lowerAscii", "upperAscii", "replace", "split", "substring", "trim",
		"isSorted", "sum", "min", "max", "distinct", "flatten", "slice",
		"sets.contains", "sets.equivalent", "sets.intersects",
	}
}

// errTooLarge is in the answer of a function that would go beyond a bound.
var errTooLarge = errors.New("too large")

func tooLarge(what string) ref.Val {
	return types.WrapErr(fmt.Errorf("%s: %w", what, errTooLarge))
}
