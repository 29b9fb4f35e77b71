// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/setpoint-io/setpoint/watch/event"
)

// closed has the fields of event's types that have one of few values, or a list of them.
var closed = map[string][]string{
	eventType + ".verb": names(event.Verbs()), eventType + ".classes": names(event.Classes()),
	fieldType + ".class": names(event.Classes()), fieldType + ".op": names([]event.Op{event.Add, event.Remove, event.Replace}),
	authorType + ".operation": {"Apply", "Update"},
}

func names[T ~string](values []T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}

// comparing are the functions that compare their two arguments, or elements of them.
var comparing = []string{operators.Equals, operators.NotEquals, operators.In, "sets.contains", "sets.equivalent", "sets.intersects"}

// checkValues finds comparisons of closed fields with texts that they never are. Such a
// comparison has the same result for every event: it is a mistake.
func checkValues(expr string, checked *cel.Ast) error {
	tree := checked.NativeRep()
	for _, call := range ast.MatchDescendants(ast.NavigateAST(tree), ast.KindMatcher(ast.CallKind)) {
		args := call.AsCall().Args()
		if len(args) != 2 || !slices.Contains(comparing, call.AsCall().FunctionName()) {
			continue
		}
		for i, arg := range args {
			field := closedField(arg.(ast.NavigableExpr)) //nolint:forcetypeassert // as children of such are
			for _, literal := range texts(args[1-i]) {
				written := string(literal.AsLiteral().(types.String)) //nolint:forcetypeassert // as texts says
				if field == "" || slices.Contains(closed[field], written) {
					continue
				}
				at := tree.SourceInfo().GetStartLocation(literal.ID())
				_, name, _ := strings.Cut(field, ".")
				return &CompileError{
					Expr: expr, Line: at.Line(), Column: at.Column(),
					Message: fmt.Sprintf("%s is never %q", name, printed(written)),
					Hint:    strings.TrimSpace(meant(written, closed[field]) + " There are " + strings.Join(closed[field], ", ")),
				}
			}
		}
	}
	return nil
}

// closedField returns the closed field that an expression reads, or an element of one; "" if
// it is none.
func closedField(e ast.NavigableExpr) string {
	switch e.Kind() {
	case ast.SelectKind:
		operand, ok := e.AsSelect().Operand().(ast.NavigableExpr)
		if name := operand.Type().TypeName() + "." + e.AsSelect().FieldName(); ok && closed[name] != nil {
			return name
		}
	case ast.CallKind: // event.classes[0]
		if args := e.AsCall().Args(); e.AsCall().FunctionName() == operators.Index {
			return closedField(args[0].(ast.NavigableExpr)) //nolint:forcetypeassert // as children of such are
		}
	case ast.IdentKind: // event.classes.exists(c, c == "status")
		for up, ok := e.Parent(); ok; up, ok = up.Parent() {
			if up.Kind() == ast.ComprehensionKind && up.AsComprehension().IterVar() == e.AsIdent() {
				return closedField(up.AsComprehension().IterRange().(ast.NavigableExpr)) //nolint:forcetypeassert // as children of such are
			}
		}
	default: // reads nothing, or something that is made
	}
	return ""
}

// texts returns the expression if it is a text, or the texts in it if it is a list.
func texts(e ast.Expr) []ast.Expr {
	all := []ast.Expr{e}
	if e.Kind() == ast.ListKind {
		all = e.AsList().Elements()
	}
	var found []ast.Expr
	for _, e := range all {
		if e.Kind() != ast.LiteralKind {
			continue
		}
		if _, ok := e.AsLiteral().(types.String); ok {
			found = append(found, e)
		}
	}
	return found
}
