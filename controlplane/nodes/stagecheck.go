// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/cel"
	"sigs.k8s.io/kwok/pkg/utils/expression"
)

// compile compiles every expression of a Stage, and keeps nothing: KWOK does it
// only when the Stage first meets an object, and takes a Stage for good whose
// expressions failed to compile the second time it is asked.
func compile(stage *internalversion.Stage, of any) error {
	env, err := cel.NewEnvironment(cel.EnvironmentConfig{
		Types:       slices.Clone(cel.DefaultTypes),
		Conversions: slices.Clone(cel.DefaultConversions),
		Methods:     maps.Clone(cel.FuncsToMethods(cel.DefaultFuncs)),
		Funcs:       maps.Clone(cel.DefaultFuncs),
		Vars:        map[string]any{"self": of},
	})
	if err != nil {
		return err
	}
	for i, e := range stage.Spec.Selector.MatchExpressions {
		switch {
		case e.JQ != nil:
			_, err = expression.NewRequirement(e.JQ.Key, e.JQ.Operator, e.JQ.Values)
		case e.CEL != nil:
			_, err = env.Compile(e.CEL.Expression)
		default:
			err = fmt.Errorf("it has neither a key nor an expression")
		}
		if err != nil {
			return fmt.Errorf("selector.matchExpressions[%d]: %w", i, err)
		}
	}
	from := map[string]*internalversion.ExpressionFrom{"weightFrom": stage.Spec.WeightFrom}
	if delay := stage.Spec.Delay; delay != nil {
		from["delay.durationFrom"] = delay.DurationFrom
		from["delay.jitterDurationFrom"] = delay.JitterDurationFrom
	}
	for field, e := range from {
		if e == nil {
			continue
		}
		if e.JQ != nil {
			_, err = expression.NewQuery(e.JQ.Expression)
		}
		if e.CEL != nil {
			_, err = env.Compile(e.CEL.Expression)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	return nil
}
