// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-io/setpoint/watch/where"
)

// condition compiles the condition at a path, if there is one.
func (r *rules) condition(path, expr string) *where.Condition {
	node := r.nodes[path]
	if node == nil || r.spoilt(path) {
		return nil
	}
	// Without the line breaks at its end, a mistake there is in a line with text.
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

// locate returns the place in the file of a place in the text of a scalar: line from 1 and column
// from 0 in, both from 1 out. In all styles of YAML, folded or not, the characters of a text that
// are not blank are in the file in the same order. If they are not, locate returns the place where
// the scalar begins.
func locate(lines []string, node *yaml.Node, line, column int) (fileLine, fileColumn int) {
	text := []rune(node.Value)
	offset := 0
	for i := 1; i < line && offset < len(text); offset++ {
		if text[offset] == '\n' {
			i++
		}
	}
	offset += column
	s := open(lines, node)
	for i, r := range text {
		if unicode.IsSpace(r) {
			continue
		}
		width := s.next(r)
		if width == 0 {
			return node.Line, node.Column
		}
		if i >= offset {
			break
		}
		s.skip(width)
	}
	return s.line + 1, s.column + 1
}

// source is a place in a file, which moves along with the text of a scalar.
type source struct {
	lines        []string // from line on
	line, column int      // from 0
	row          []rune   // the rest of the line
	quote        yaml.Style
}

// open goes to where the text of a scalar begins, behind an anchor, a tag and a quote.
func open(lines []string, node *yaml.Node) *source {
	s := &source{lines: lines[node.Line-1:], line: node.Line - 1, quote: node.Style & (yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle)}
	s.row = []rune(s.lines[0])
	s.skip(node.Column - 1)
	for len(s.row) > 0 && (s.row[0] == '&' || s.row[0] == '!') {
		s.skip(slices.Index(append(s.row, ' '), ' ') + 1)
	}
	switch {
	case node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		s.skip(len(s.row))
	case s.quote != 0:
		s.skip(1)
	}
	return s
}

func (s *source) skip(columns int) {
	columns = min(columns, len(s.row))
	s.row, s.column = s.row[columns:], s.column+columns
}

// next goes to the next character that is not blank, and returns how many columns it takes;
// 0 if it is not r.
func (s *source) next(r rune) (width int) {
	for {
		switch {
		case len(s.row) == 0 && len(s.lines) < 2:
			return 0
		case len(s.row) == 0:
			s.lines, s.line, s.column = s.lines[1:], s.line+1, 0
			s.row = []rune(s.lines[0])
		case unicode.IsSpace(s.row[0]):
			s.skip(1)
		case s.quote == yaml.SingleQuotedStyle && s.row[0] == '\'':
			return 2
		case s.quote == yaml.DoubleQuotedStyle && s.row[0] == '\\' && (len(s.row) == 1 || strings.ContainsRune("nrtvf \r", s.row[1])):
			s.skip(2) // a blank, or the end of a line that goes on
		case s.quote == yaml.DoubleQuotedStyle && s.row[0] == '\\':
			return 2 + map[rune]int{'x': 2, 'u': 4, 'U': 8}[s.row[1]]
		case s.row[0] == r:
			return 1
		default:
			return 0
		}
	}
}
