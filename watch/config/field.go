// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// field is a field of a struct that a key stands for.
type field struct {
	key   string
	index []int
	of    reflect.Type
}

// fieldsOf returns the fields of a struct and of what is inlined into it, in their order.
func fieldsOf(of reflect.Type) (fields []field) {
	for _, f := range reflect.VisibleFields(of) {
		if key, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); key != "" && f.IsExported() {
			fields = append(fields, field{key: key, index: f.Index, of: f.Type})
		}
	}
	return fields
}

func fieldOf(fields []field, key string) (field, bool) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
	if i < 0 {
		return field{}, false
	}
	return fields[i], true
}

func keys(fields []field) (keys []string) {
	for _, f := range fields {
		keys = append(keys, f.key)
	}
	return keys
}

// A path names a value by the keys that lead to it: sinks[0].file.path.

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// index is the path of an element of a list.
func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// parent returns the path of the value that contains the one of a path.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// inside reports whether a path is another one, or that of a value in it.
func inside(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
