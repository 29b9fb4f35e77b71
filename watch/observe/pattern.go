// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// stepKind says what a step of a pattern leads to.
type stepKind uint8

const (
	named   stepKind = iota // a field of an object
	each                    // every field of an object
	element                 // every element of a list
	keyed                   // the elements of a list that have a value in a field
)

// step is one element of a pattern.
type step struct {
	kind  stepKind
	name  string // of the field, or of the key
	value string // of the key
}

// pattern is a path that may stand for many.
type pattern []step

// parsePattern reads the form in which the paths of fields are written, with * and [*] for
// any name and any element:
//
//	data.*
//	spec.users[*].password
//	spec.users[name=admin].password
//	metadata.annotations[example.com/token]
//	data["*"]
func parsePattern(text string) (pattern, error) {
	var p pattern
	rest := text
	for rest != "" {
		at := len(text) - len(rest) + 1
		if rest[0] == '[' {
			s, after, err := parseBracket(rest)
			if err != nil {
				return nil, fmt.Errorf("at character %d: %w", at, err)
			}
			p, rest = append(p, s), after
			continue
		}
		if len(p) > 0 {
			if rest[0] != '.' {
				return nil, fmt.Errorf("at character %d: want a dot or a bracket before %q", at, rest)
			}
			rest, at = rest[1:], at+1
		}
		end := strings.IndexAny(rest, `.["]= `)
		if end < 0 {
			end = len(rest)
		}
		name := rest[:end]
		switch name {
		case "":
			return nil, fmt.Errorf("at character %d: want the name of a field; one with other signs than letters, digits, - and _ is written in brackets, as in annotations[example.com/owner]", at)
		case "*":
			p = append(p, step{kind: each})
		default:
			p = append(p, step{kind: named, name: name})
		}
		rest = rest[end:]
	}
	if len(p) == 0 {
		return nil, errors.New("the path is empty")
	}
	return p, nil
}

// parseBracket reads [name], [*] or [key=value] and returns what follows.
func parseBracket(text string) (step, string, error) {
	name, quoted, rest, err := parseWord(text[1:], "]=")
	if err != nil {
		return step{}, "", err
	}
	switch {
	case rest == "":
		return step{}, "", errors.New("the bracket is not closed")
	case rest[0] == '=':
		value, _, rest, err := parseWord(rest[1:], "]")
		if err != nil {
			return step{}, "", err
		}
		if rest == "" || rest[0] != ']' {
			return step{}, "", errors.New("the bracket is not closed; a value with other signs is quoted, as in [name=\"a]b\"]")
		}
		return step{kind: keyed, name: name, value: value}, rest[1:], nil
	case rest[0] != ']':
		return step{}, "", errors.New("want a closing bracket after a quoted name")
	case quoted:
	case name == "*":
		return step{kind: element}, rest[1:], nil
	case name == "":
		return step{}, "", errors.New("the bracket is empty; [*] stands for every element")
	case strings.Trim(name, "0123456789") == "":
		return step{}, "", fmt.Errorf("[%s] is a position, and positions move; use [*], or [name=value], or [%q] for a field of that name", name, name)
	}
	return step{kind: named, name: name}, rest[1:], nil
}

// parseWord reads a word that is quoted, or ends before one of the signs.
func parseWord(text, end string) (word string, quoted bool, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		q, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", false, "", errors.New("a quote is not closed")
		}
		word, err = strconv.Unquote(q)
		if err != nil {
			return "", false, "", fmt.Errorf("reading %s: %w", q, err)
		}
		return word, true, text[len(q):], nil
	}
	i := strings.IndexAny(text, end)
	if i < 0 {
		return "", false, "", errors.New("the bracket is not closed")
	}
	return text[:i], false, text[i:], nil
}
