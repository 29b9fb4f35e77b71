// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/setpoint-io/setpoint/watch/diff"
)

// ownedElements finds the elements of lists in a fieldsV1 by their keys. Each list is read once
// for each set of names that its elements have keys of, so that the search for all of a list's
// elements takes as long as the list, and not as its square.
type ownedElements map[ownedList]map[string][]ownedElement

// ownedList is one list of a fieldsV1, by the names of keys.
type ownedList struct {
	fields uintptr // the map, which lives as long as the search
	names  string
}

type ownedElement struct {
	keys  map[string]any
	below any
}

// of returns what is owned below the element that has these keys.
func (o ownedElements) of(fields map[string]any, keys []diff.Key) (any, bool) {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	list := ownedList{reflect.ValueOf(fields).Pointer(), strings.Join(names, "\x00")}
	index, known := o[list]
	if !known {
		index = indexOwned(fields, names)
		o[list] = index
	}
	values := make([]any, len(keys))
	for i, k := range keys {
		values[i] = k.Value
	}
	for _, e := range index[rough(values)] {
		if !slices.ContainsFunc(keys, func(k diff.Key) bool { return !diff.Equal(e.keys[k.Name], k.Value) }) {
			return e.below, true
		}
	}
	return nil, false
}

func indexOwned(fields map[string]any, names []string) map[string][]ownedElement {
	index := map[string][]ownedElement{}
	for name, below := range fields {
		text, ok := strings.CutPrefix(name, "k:")
		if !ok {
			continue
		}
		var keys map[string]any
		if json.Unmarshal([]byte(text), &keys) != nil {
			continue
		}
		values := make([]any, len(names))
		for i, name := range names {
			values[i] = keys[name]
		}
		at := rough(values)
		index[at] = append(index[at], ownedElement{keys, below})
	}
	return index
}

// rough is the same for values that are equal. Those that are not may have the same, as large
// numbers do that differ by less than a float64 can tell.
func rough(values []any) string {
	var b []byte
	for _, v := range values {
		switch v := v.(type) {
		case string:
			b = strconv.AppendQuote(b, v)
		case bool:
			b = strconv.AppendBool(b, v)
		case float64:
			b = strconv.AppendFloat(b, v, 'g', -1, 64)
		case int64:
			b = strconv.AppendFloat(b, float64(v), 'g', -1, 64)
		case int:
			b = strconv.AppendFloat(b, float64(v), 'g', -1, 64)
		case json.Number:
			f, _ := v.Float64() // a number that is none is like 0
			b = strconv.AppendFloat(b, f, 'g', -1, 64)
		default:
			b = append(b, '?')
		}
		b = append(b, ',')
	}
	return string(b)
}
