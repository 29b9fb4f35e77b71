// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"strconv"
	"strings"
)

// step is one step of the path of a field.
type step struct {
	name string // of a field, or of an entry of a map
	keys string // of a list element: name=web
	list bool   // it is an element of a list
}

// key returns the value of a list element's only key, or all its keys.
func (s step) key() string {
	if _, value, ok := strings.Cut(s.keys, "="); ok && !strings.Contains(value, "=") {
		if text, err := strconv.Unquote(value); err == nil {
			return text
		}
		return value
	}
	return s.keys
}

// parse takes a path apart, as package diff writes them: fields after points, entries of
// maps and elements of lists in brackets, quoted where they could be taken for something
// else. What it cannot read is one step.
func parse(path string) []step {
	var steps []step
	for rest := path; rest != ""; {
		switch rest[0] {
		case '.':
			rest = rest[1:]
		case '[':
			inside, after, ok := brackets(rest)
			if !ok {
				return append(steps, step{name: rest})
			}
			steps, rest = append(steps, inside), after
		default:
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			steps, rest = append(steps, step{name: rest[:end]}), rest[end:]
		}
	}
	return steps
}

// brackets reads what a path has in brackets.
func brackets(s string) (inside step, after string, ok bool) {
	body := s[1:]
	end := 0
	keyed := false
	for end < len(body) && body[end] != ']' {
		if body[end] != '"' {
			keyed = keyed || body[end] == '='
			end++
			continue
		}
		quoted, err := strconv.QuotedPrefix(body[end:])
		if err != nil {
			return step{}, "", false
		}
		end += len(quoted)
	}
	if end == len(body) {
		return step{}, "", false
	}
	body, after = body[:end], body[end+1:]
	switch text, err := strconv.Unquote(body); {
	case keyed:
		return step{keys: body, list: true}, after, true
	case err == nil:
		return step{name: text}, after, true
	case body == "order" || allDigits(body):
		return step{keys: body, list: true}, after, true
	}
	return step{name: body}, after, true
}

func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// under reports whether a path begins with these fields and has more, and returns what.
func under(path []step, fields ...string) ([]step, bool) {
	if len(path) <= len(fields) {
		return nil, false
	}
	for i, name := range fields {
		if path[i].name != name || path[i].list {
			return nil, false
		}
	}
	return path[len(fields):], true
}
