// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind that a policy matches, with its schema.
type Kind struct {
	Kind   schema.GroupVersionKind
	Schema *Schema
}

// Check compiles the expressions of a policy for each of the kinds, and returns a warning for each
// expression that does not compile for all of them. params is the schema of the parameters of a
// policy that has some; nil is one that is not known.
func Check(policy *admissionv1.ValidatingAdmissionPolicy, kinds []Kind, params *Schema) ([]admissionv1.ExpressionWarning, error) {
	var checkers []checker
	for _, kind := range kinds {
		c, err := newChecker(policy, kind, params)
		if err != nil {
			return nil, fmt.Errorf("checking the expressions of validatingadmissionpolicy %s for %s: %w", policy.Name, kind.Kind, err)
		}
		checkers = append(checkers, c)
	}
	var warnings []admissionv1.ExpressionWarning
	check := func(field, expression string) {
		var found []string
		for _, c := range checkers {
			if _, issues := c.env.Compile(expression); issues.Err() != nil {
				found = append(found, fmt.Sprintf("%v: %s\n", c.kind, issues))
			}
		}
		if found != nil {
			warnings = append(warnings, admissionv1.ExpressionWarning{FieldRef: field, Warning: strings.Join(found, "\n")})
		}
	}
	for i, validation := range policy.Spec.Validations {
		field := fmt.Sprintf("spec.validations[%d]", i)
		check(field+".expression", validation.Expression)
		if validation.MessageExpression != "" {
			check(field+".messageExpression", validation.MessageExpression)
		}
	}
	return warnings, nil
}

// keeps reports whether new warnings have all that a status has.
func keeps(status *admissionv1.TypeChecking, warnings []admissionv1.ExpressionWarning) bool {
	if status == nil {
		return true
	}
	now := map[string]string{}
	for _, w := range warnings {
		now[w.FieldRef] = w.Warning
	}
	for _, w := range status.ExpressionWarnings {
		for kind := range strings.SplitSeq(strings.TrimSpace(w.Warning), "\n\n") { // Check has an empty line between kinds
			if !strings.Contains(now[w.FieldRef], kind) {
				return false
			}
		}
	}
	return true
}

// checker compiles the expressions of a policy for one kind.
type checker struct {
	kind schema.GroupVersionKind
	env  *cel.Env
}

// newChecker returns the checker of a policy for a kind. Each variable of the policy may use those
// before it.
func newChecker(policy *admissionv1.ValidatingAdmissionPolicy, kind Kind, params *Schema) (checker, error) {
	env, known, err := environment(kind, !paramsOf(policy).Empty(), params)
	if err != nil {
		return checker{}, err
	}
	for _, v := range policy.Spec.Variables {
		typ := cel.DynType
		if ast, issues := env.Compile(v.Expression); issues.Err() == nil {
			typ = composed(ast.OutputType())
		}
		known[variablesType][v.Name] = typ
	}
	return checker{kind.Kind, env}, nil
}

// composed returns the type that a variable of a policy has in expressions: lists, maps and simple
// types are known there, and objects are not.
// Source: k8s.io/apiserver/pkg/admission/plugin/cel, convertCelTypeToDeclType.
func composed(t *cel.Type) *cel.Type {
	switch t.Kind() { //nolint:exhaustive // all others are dynamic
	case cel.ListKind:
		return cel.ListType(composed(t.Parameters()[0]))
	case cel.MapKind:
		return cel.MapType(composed(t.Parameters()[0]), composed(t.Parameters()[1]))
	case cel.AnyKind, cel.BoolKind, cel.BytesKind, cel.DoubleKind, cel.DurationKind, cel.IntKind, cel.NullTypeKind,
		cel.StringKind, cel.TimestampKind, cel.UintKind:
		return t
	}
	return cel.DynType
}
