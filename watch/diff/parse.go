// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ParsePath reads a path as [Path.String] writes it. Values of keys are texts then. A path may
// also be a pattern, in which * stands for any field, and [*] for any element of a list:
//
//	data.*
//	spec.users[*].password
//	spec.users[name=admin].password
//	metadata.annotations[example.com/token]
//	data["*"]
func ParsePath(text string) (Path, error) {
	var p Path
	for rest := text; rest != ""; {
		at := len(text) - len(rest) + 1
		var e Element
		var err error
		switch {
		case rest[0] == '[':
			e, rest, err = parseBracket(rest[1:])
		case len(p) > 0 && rest[0] != '.':
			err = fmt.Errorf("want a dot or a bracket before %q", rest)
		case len(p) > 0:
			at++
			e, rest, err = parseField(rest[1:])
		default:
			e, rest, err = parseField(rest)
		}
		if err != nil {
			return nil, fmt.Errorf("at character %d: %w", at, err)
		}
		p = append(p, e)
	}
	if len(p) == 0 {
		return nil, errors.New("the path is empty")
	}
	return p, nil
}

// parseField reads a name without brackets, and returns what follows.
func parseField(text string) (Element, string, error) {
	end := strings.IndexAny(text, `.["]= `)
	if end < 0 {
		end = len(text)
	}
	name, rest := text[:end], text[end:]
	switch name {
	case "":
		return Element{}, "", errors.New("want the name of a field; one with other signs than letters, digits, - and _ is written in brackets, as in annotations[example.com/owner]")
	case "*":
		return Element{Kind: Field, Any: true}, rest, nil
	}
	return Element{Kind: Field, Name: name}, rest, nil
}

var errOpen = errors.New("the bracket is not closed")

// parseBracket reads what is behind an opening bracket, and returns what follows the closing
// one.
func parseBracket(text string) (Element, string, error) {
	name, quoted, rest, err := parseWord(text, "]=")
	switch {
	case err != nil:
		return Element{}, "", err
	case rest == "":
		return Element{}, "", errOpen
	case rest[0] == '=':
		return parseKeys(name, rest[1:])
	case rest[0] != ']':
		return Element{}, "", errors.New("want a closing bracket after a quoted name")
	}
	rest = rest[1:]
	switch {
	case quoted:
	case name == "*":
		return Element{Kind: Item, Any: true}, rest, nil
	case name == orderName:
		return Element{Kind: Order, Old: -1, New: -1}, rest, nil
	case name == "":
		return Element{}, "", errors.New("the bracket is empty; [*] stands for every element")
	case strings.Trim(name, "0123456789") == "":
		if at, err := strconv.Atoi(name); err == nil {
			return Element{Kind: Item, Old: at, New: at}, rest, nil
		}
	}
	return Element{Kind: Field, Name: name}, rest, nil
}

// parseKeys reads the value of the first key, and further keys.
func parseKeys(name, text string) (Element, string, error) {
	e := Element{Kind: Keyed}
	for {
		value, _, rest, err := parseWord(text, "],")
		if err != nil {
			return Element{}, "", err
		}
		e.Keys = append(e.Keys, Key{Name: name, Value: value})
		switch {
		case strings.HasPrefix(rest, "]"):
			return e, rest[1:], nil
		case !strings.HasPrefix(rest, ","):
			return Element{}, "", fmt.Errorf(`%w; a value with other signs is quoted, as in [name="a]b"]`, errOpen)
		}
		if name, _, rest, err = parseWord(rest[1:], "]="); err != nil {
			return Element{}, "", err
		}
		if !strings.HasPrefix(rest, "=") {
			return Element{}, "", fmt.Errorf(`the key %q has no value; a value with a comma is quoted, as in [name="a,b"]`, name)
		}
		text = rest[1:]
	}
}

// parseWord reads a word that is quoted, or that ends before one of the signs.
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
		return "", false, "", errOpen
	}
	return text[:i], false, text[i:], nil
}
