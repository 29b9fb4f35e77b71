// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-io/setpoint/watch/where"
)

// condition compiles the condition at a path, if there is one.
func (r *rules) condition(path, expr string) *where.Condition {
	node := r.nodes[path]
	if node == nil || r.spoilt(path) {
		return nil
	}
	// Without the line break at the end a mistake there is shown in the last line that says something.
	compiled, err := where.Compile(strings.TrimRight(expr, " \t\r\n"))
	if err == nil {
		return compiled
	}
	var wrong *where.CompileError
	if !errors.As(err, &wrong) {
		r.wrong(path, "%v", err)
		return nil
	}
	text := wrong.Message
	if wrong.Hint != "" {
		text += "; " + wrong.Hint
	}
	found := r.at(path, "the condition is wrong: %s", strings.Join(strings.Fields(text), " "))
	if wrong.Expr != "" {
		found.Line, found.Column = locate(r.lines, node, wrong.Line, wrong.Column)
		// Only the line of the condition is shown: in a file of few lines there may be a
		// secret on the same one.
		bare := *wrong
		bare.Message, bare.Hint = "", ""
		_, found.Excerpt, _ = strings.Cut(bare.Error(), "\n")
	}
	r.bad[path] = true
	r.findings.add(found)
	return nil
}

// locate returns where in a file a place in the text of a scalar is: line from 1 and column
// from 0 in, both from 1 out. Where the text was written in a way that is not followed
// here, it is where the scalar begins.
func locate(lines []string, node *yaml.Node, line, column int) (fileLine, fileColumn int) {
	value := []rune(node.Value)
	offset := 0
	for i := 1; i < line && offset < len(value); offset++ {
		if value[offset] == '\n' {
			i++
		}
	}
	offset = min(offset+max(column, 0), len(value))
	s := source{lines: lines, line: node.Line - 1, style: node.Style}
	if s.open(node.Column - 1) {
		for i, r := range value[:offset] {
			if !s.next(r, value[i+1:]) {
				return node.Line, node.Column
			}
		}
		return s.line + 1, s.column + 1
	}
	return node.Line, node.Column
}

// source is a place in a file, which moves along with the text of a scalar.
type source struct {
	lines  []string
	line   int // from 0
	row    []rune
	column int // from 0
	style  yaml.Style
	indent int // of a literal or folded text
}

// turn goes to the beginning of a line.
func (s *source) turn(line int) bool {
	if line < 0 || line >= len(s.lines) {
		return false
	}
	s.line, s.row, s.column = line, []rune(strings.TrimSuffix(s.lines[line], "\r")), 0
	return true
}

// open goes to the first character of the text.
func (s *source) open(column int) bool {
	if !s.turn(s.line) || column < 0 || column > len(s.row) {
		return false
	}
	s.column = column
	for s.column < len(s.row) && (s.row[s.column] == '&' || s.row[s.column] == '!') { // anchor, tag
		for s.column < len(s.row) && s.row[s.column] != ' ' {
			s.column++
		}
		s.blanks()
	}
	switch {
	case s.block():
		first := s.line + 1
		for s.indent == 0 && s.turn(s.line+1) {
			if s.blanks(); s.column < len(s.row) {
				s.indent = s.column
			}
		}
		if s.indent == 0 || !s.turn(first) {
			return false
		}
		s.column = min(s.indent, len(s.row)) // empty lines before it are part of the text
		return true
	case s.style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		s.column++
	}
	return s.column <= len(s.row)
}

func (s *source) block() bool { return s.style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 }

func (s *source) blanks() {
	for s.column < len(s.row) && (s.row[s.column] == ' ' || s.row[s.column] == '\t') {
		s.column++
	}
}

// ended reports whether there is nothing but blanks in the rest of the line.
func (s *source) ended() bool { return strings.TrimSpace(string(s.row[s.column:])) == "" }

// next goes past a character of the text.
func (s *source) next(r rune, rest []rune) bool {
	if r == '\n' && s.style&yaml.LiteralStyle != 0 {
		if !s.turn(s.line + 1) {
			return false
		}
		s.column = min(s.indent, len(s.row))
		return true
	}
	if (r == ' ' || r == '\n') && s.ended() {
		return s.fold(r == '\n' && len(rest) > 0 && rest[0] == '\n')
	}
	if s.column >= len(s.row) {
		return false
	}
	switch at := s.row[s.column]; {
	case at == '\\' && s.style&yaml.DoubleQuotedStyle != 0:
		return s.escape()
	case at == '\'' && s.style&yaml.SingleQuotedStyle != 0:
		s.column += 2
	case at == r:
		s.column++
	default:
		return false
	}
	return true
}

// fold goes past a line break that stands for a space or, with empty lines behind it, for
// as many breaks; more says that another one follows.
func (s *source) fold(more bool) bool {
	for s.turn(s.line + 1) {
		if more {
			return true
		}
		if s.blanks(); s.column < len(s.row) {
			if s.block() { // what is further in is part of the text
				s.column = min(s.indent, s.column)
			}
			return true
		}
	}
	return false
}

// escape goes past what stands behind a backslash.
func (s *source) escape() bool {
	if s.column+1 >= len(s.row) {
		return false // a line that goes on
	}
	width := map[rune]int{'x': 2, 'u': 4, 'U': 8}[s.row[s.column+1]]
	s.column += 2 + width
	return s.column <= len(s.row)
}
