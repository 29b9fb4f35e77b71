// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"github.com/setpoint-io/setpoint/watch/event"
)

// Why a condition has no result for an event. Errors of Matches wrap one of them.
var (
	// ErrAbsent: the condition reads something that this object does not have, or that is
	// of another type there.
	ErrAbsent = errors.New("the object has no such field, or another type of it")
	// ErrFailed: a call or an operator of the condition fails, such as a division by zero.
	ErrFailed = errors.New("the condition fails for this object")
	// ErrCost: the evaluation would have taken too long.
	ErrCost = errors.New("the condition costs too much for this object")
	// ErrNotBool: the result of the condition is neither true nor false.
	ErrNotBool = errors.New("the condition is neither true nor false")
)

const (
	// longest is how many bytes a condition may have: more than users write by hand.
	longest = 8 << 10
	// costLimit is what one evaluation may cost, in CEL's units, of which reading a field is
	// one. It is a twentieth of what Kubernetes grants an expression of a policy, because
	// cel-go's account of the cost takes time with the square of it: here 50 ms at most, there
	// 10 s. A condition on a Pod with a loop over its containers costs less than 100.
	costLimit = 50_000
)

// Condition is a condition that was compiled. It is safe for concurrent use.
type Condition struct {
	text    string
	program cel.Program
}

// Compile returns the condition, or a *CompileError that says where it is wrong.
func Compile(expr string) (*Condition, error) {
	if len(expr) > longest {
		return nil, &CompileError{Message: fmt.Sprintf("it has %d bytes, more than %d", len(expr), longest)}
	}
	if strings.TrimSpace(expr) == "" {
		return nil, &CompileError{Message: "it is empty", Hint: `write one, such as event.verb == "deleted"`}
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("preparing CEL: %w", err)
	}
	ast, issues := env.Compile(expr)
	if issues.Err() != nil {
		return nil, mistake(expr, issues.Errors(), env)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, &CompileError{
			Expr: expr, Line: 1, Message: "it is of type " + t.String() + ", and not true or false",
			Hint: "compare it with something",
		}
	}
	if err := checkPatterns(expr, ast); err != nil {
		return nil, err
	}
	if err := checkValues(expr, ast); err != nil {
		return nil, err
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CustomDecorator(bounded(env)),
		cel.CostTracking(prices{}), cel.CostLimit(costLimit))
	if err != nil {
		return nil, &CompileError{Expr: expr, Line: 1, Message: err.Error()}
	}
	return &Condition{text: expr, program: program}, nil
}

// String returns the condition as it was written.
func (c *Condition) String() string { return c.text }

// Matches reports whether the condition is true of an event. With an error it is not known
// to be, and the answer is false: the error wraps ErrAbsent, ErrFailed, ErrCost or ErrNotBool.
func (c *Condition) Matches(e *event.Event) (bool, error) {
	out, _, err := c.program.Eval(&variables{e: e})
	if err != nil {
		return false, c.undecided(e, reason(err))
	}
	matches, ok := out.(types.Bool)
	if !ok {
		return false, c.undecided(e, fmt.Errorf("%w but %s", ErrNotBool, out.Type().TypeName()))
	}
	return bool(matches), nil
}

func (c *Condition) undecided(e *event.Event, why error) error {
	return fmt.Errorf("evaluating %q for %s %s: %w", c.text, e.Kind, e.Key, why)
}

// absences are what the errors of cel-go begin with where a condition reads what is not there,
// or is of another type. They have no types of their own.
// Source: github.com/google/cel-go/interpreter, resolutionError, and common/types, err.go and list.go.
var absences = []string{"no such key", "no such attribute", "no such overload", "index out of", "index '"}

// reason says why an evaluation has no result.
func reason(err error) error {
	if _, stopped := errors.AsType[interpreter.EvalCancelledError](err); stopped {
		return ErrCost
	}
	for _, prefix := range absences {
		if strings.HasPrefix(err.Error(), prefix) {
			return fmt.Errorf("%w: %w", ErrAbsent, err)
		}
	}
	return fmt.Errorf("%w: %w", ErrFailed, err)
}
