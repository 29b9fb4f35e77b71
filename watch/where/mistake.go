// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/setpoint-io/setpoint/internal/nearest"
)

// CompileError says what is wrong with a condition, and where.
type CompileError struct {
	// Expr is the condition. Empty if there is no place in it to point to.
	Expr string
	// Line counts from 1, Column from 0, in characters.
	Line, Column int
	// Message is what is wrong, Hint what may have been meant; it may be empty.
	Message, Hint string
}

// Error returns the message, the line of the condition with a caret under the mistake, and
// the hint, each on its own line.
func (e *CompileError) Error() string {
	var b strings.Builder
	b.WriteString("the condition is wrong: " + e.Message)
	if lines := strings.Split(e.Expr, "\n"); e.Expr != "" && e.Line >= 1 && e.Line <= len(lines) {
		line, column := window([]rune(lines[e.Line-1]), e.Column)
		fmt.Fprintf(&b, "\n    %s\n    %s^", line, strings.Repeat(" ", column))
	}
	if e.Hint != "" {
		b.WriteString("\n" + e.Hint)
	}
	return b.String()
}

// window returns the part of a long line that the column is in, with a "…" where the line goes
// on, and with every character that would move the caret, or the terminal, replaced by a space.
func window(line []rune, column int) (string, int) {
	const before, after = 60, 40
	column = min(max(column, 0), len(line))
	if len(line) <= before+after {
		return printed(string(line)), column
	}
	left, right := "", ""
	if from := column - before; from > 0 {
		left, line, column = "…", line[from:], before
	}
	if to := column + after; to < len(line) {
		right, line = "…", line[:to]
	}
	return left + printed(string(line)) + right, column + len([]rune(left))
}

// printed returns a text with a space for each character that is not seen.
func printed(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// mistake makes an error of the first mistake that CEL found. The others are most often
// consequences of it.
func mistake(expr string, found []*common.Error, env *cel.Env) *CompileError {
	first := found[0]
	message, _, _ := strings.Cut(first.Message, " expecting {") // all tokens of the language
	message = printed(strings.TrimSuffix(message, " (in container '')"))
	err := &CompileError{Expr: expr, Line: first.Location.Line(), Column: first.Location.Column(), Message: message}
	if err.Line < 1 {
		err.Line = 1
	}
	err.Hint = hint(message, env, err.at('('))
	return err
}

// at reports whether the place of the mistake begins with a character.
func (e *CompileError) at(c rune) bool {
	lines := strings.Split(e.Expr, "\n")
	if e.Line > len(lines) {
		return false
	}
	line := []rune(lines[e.Line-1])
	return e.Column >= 0 && e.Column < len(line) && line[e.Column] == c
}

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	undefined  = regexp.MustCompile(`^undefined field '([^']*)'`)
	assignment = regexp.MustCompile(`token recognition error at: '=[^=]`)
)

// variableNames are what a condition may begin with.
var variableNames = []string{"event", "old", "new", "object"}

// functionNames returns the functions and macros that a condition can call by name.
func functionNames(env *cel.Env) []string {
	all := slices.Collect(maps.Keys(env.Functions()))
	for _, macro := range env.Macros() {
		all = append(all, macro.Function())
	}
	all = slices.DeleteFunc(all, func(name string) bool { return strings.ContainsAny(name, "_@!?-") && name != "exists_one" }) // operators
	slices.Sort(all)
	return slices.Compact(all)
}

func hint(message string, env *cel.Env, call bool) string {
	if assignment.MatchString(message) {
		return "two values are compared with =="
	}
	if m := undeclared.FindStringSubmatch(message); m != nil {
		if shape[eventType][m[1]] != nil {
			return fmt.Sprintf("did you mean \"event.%s\"?", m[1])
		}
		functions := functionNames(env)
		if call { // the place of a call is its bracket
			return meant(m[1], functions)
		}
		return strings.TrimSpace(meant(m[1], append(functions, variableNames...)) + " There are event, old, new and object")
	}
	if m := undefined.FindStringSubmatch(message); m != nil {
		var fields []string
		for _, name := range []string{eventType, fieldType, authorType} {
			fields = append(fields, sortedKeys(shape[name])...)
		}
		return meant(m[1], fields)
	}
	return ""
}

// meant asks whether a known name was meant, if one is similar.
func meant(written string, known []string) string {
	return strings.TrimPrefix(nearest.Question("%q", written, known), "; ")
}

// checkPatterns finds patterns of matches() that are wrong, or that come from an object: such a
// pattern has no bound on its cost.
func checkPatterns(expr string, checked *cel.Ast) error {
	tree := checked.NativeRep()
	for _, call := range ast.MatchDescendants(ast.NavigateAST(tree), ast.FunctionMatcher("matches")) {
		args := call.AsCall().Args()
		pattern := args[len(args)-1]
		at := tree.SourceInfo().GetStartLocation(pattern.ID())
		err := &CompileError{Expr: expr, Line: at.Line(), Column: at.Column()}
		literal, ok := pattern.AsLiteral().(types.String)
		if pattern.Kind() != ast.LiteralKind || !ok {
			err.Message, err.Hint = "the pattern of matches() is not a literal", `write it as a text: matches("^web-.*")`
			return err
		}
		if _, wrong := regexp.Compile(string(literal)); wrong != nil {
			err.Message = "the pattern of matches() is not a regular expression: " + printed(wrong.Error())
			return err
		}
	}
	return nil
}
