// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldpaths

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Between returns the paths of the fields that differ between two states of an object of a kind. Both are pointers to
// the same Go type; it returns nothing for types that differ.
func Between(group, kind string, before, after any) []string {
	a, b := reflect.ValueOf(before), reflect.ValueOf(after)
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return nil
	}
	p := paths{closed: closedFor(group, kind)}
	p.between("", a, b)
	return p.all
}

// between adds the paths at which two values of one type differ, and reports whether more paths may be added.
func (p *paths) between(path string, a, b reflect.Value) bool {
	if identity(path) {
		return true
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		switch {
		case a.IsNil() && b.IsNil(), a.Kind() == reflect.Pointer && a.Pointer() == b.Pointer():
			return true
		case a.IsNil() || b.IsNil() || a.Elem().Type() != b.Elem().Type():
			return p.add(path)
		}
		return p.between(path, a.Elem(), b.Elem())
	case reflect.Struct:
		return p.structs(path, a, b)
	case reflect.Map:
		return p.maps(path, a, b)
	case reflect.Slice:
		return p.slices(path, a, b)
	default: // a value
		return reflect.DeepEqual(a.Interface(), b.Interface()) || p.add(path)
	}
}

// structs compares field by field. A struct with fields that JSON does not show, such as a time, is a value.
func (p *paths) structs(path string, a, b reflect.Value) bool {
	t := a.Type()
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			return reflect.DeepEqual(a.Interface(), b.Interface()) || p.add(path)
		}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		below := path
		switch {
		case name == "-":
			continue
		case name != "":
			below = field(path, name)
		case !f.Anonymous:
			return reflect.DeepEqual(a.Interface(), b.Interface()) || p.add(path)
		}
		if !p.between(below, a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}

func (p *paths) maps(path string, a, b reflect.Value) bool {
	if a.Len() == 0 && b.Len() == 0 {
		return true
	}
	if p.closed(path) {
		return reflect.DeepEqual(a.Interface(), b.Interface()) || p.add(path)
	}
	keys := map[string]reflect.Value{}
	for _, m := range [...]reflect.Value{a, b} {
		for _, key := range m.MapKeys() {
			keys[fmt.Sprint(key.Interface())] = key
		}
	}
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		x, y := a.MapIndex(keys[name]), b.MapIndex(keys[name])
		switch {
		case x.IsValid() && y.IsValid():
			if !p.between(field(path, name), x, y) {
				return false
			}
		case !p.add(field(path, name)):
			return false
		}
	}
	return true
}

// slices compares element by element if the elements have the same names in the same order.
func (p *paths) slices(path string, a, b reflect.Value) bool {
	if a.Len() == 0 && b.Len() == 0 {
		return true
	}
	if a.Len() != b.Len() || !named(a, b) {
		return reflect.DeepEqual(a.Interface(), b.Interface()) || p.add(path)
	}
	for i := range a.Len() {
		if !p.between(path+"["+nameOf(a.Index(i))+"]", a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

func named(a, b reflect.Value) bool {
	for i := range a.Len() {
		if name := nameOf(a.Index(i)); name == "" || name != nameOf(b.Index(i)) {
			return false
		}
	}
	return true
}

// nameOf returns the name of an element of a list of structs, as nameIn does.
func nameOf(element reflect.Value) string {
	if element.Kind() != reflect.Struct {
		return ""
	}
	for _, field := range [...]string{"Name", "Key", "Type", "UID"} {
		if f := element.FieldByName(field); f.IsValid() && f.Kind() == reflect.String && f.String() != "" {
			return f.String()
		}
	}
	return ""
}
