// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/setpoint-io/setpoint/watch/sink"
)

func (r *rules) sinks() {
	sinks := r.config.Sinks
	lines := map[string]int{}
	for i := range sinks {
		s, path := &sinks[i], index("sinks", i)
		name := join(path, "name")
		line := 0
		if node := r.nodes[name]; node != nil {
			line = node.Line
		}
		switch first, twice := lines[s.Name]; {
		case r.spoilt(name):
		case s.Name == "":
			r.wrong(name, "a sink needs a name, by which routes lead to it")
		case len(validation.IsDNS1123Label(s.Name)) > 0:
			r.wrong(name, "%q cannot be a name: want lower case letters, digits and dashes, at most 63", clip(s.Name))
		case twice:
			r.wrong(name, "%q is the name of the sink in line %d too; give each its own", clip(s.Name), first)
		default:
			lines[s.Name] = line
		}
		r.sink(path, s.Options)
	}
}

// sink checks the options of one sink.
func (r *rules) sink(path string, o sink.Options) {
	sorts, known := sortsOf(o)
	switch {
	case len(sorts) > 1:
		slices.SortFunc(sorts, func(a, b string) int { return r.compare(join(path, a), join(path, b)) })
		r.findings.add(r.at(join(path, sorts[1]), "a sink is of one sort, and this one is of %s; make them sinks of their own", strings.Join(sorts, " and ")))
	case len(sorts) == 0 && !r.partial[path] && !r.spoilt(path): // a key that is not known is the sort, most likely
		r.wrong(path, "a sink is of a sort; write one of the keys %s", strings.Join(known, ", "))
	}
	for _, sort := range sorts {
		alone := sink.Options{}
		field, _ := fieldOf(reflect.ValueOf(&alone).Elem(), sort)
		from, _ := fieldOf(reflect.ValueOf(&o).Elem(), sort)
		field.Set(from)
		r.options(path, alone)
	}
	r.options(path, sink.Options{Terminal: &sink.Terminal{}, Delivery: o.Delivery})
}

// sortsOf returns the sorts that are set, and all that there are.
func sortsOf(o sink.Options) (set, all []string) {
	value := reflect.ValueOf(o)
	for f := range fieldsOf(value.Type()) {
		if f.of.Kind() != reflect.Pointer {
			continue
		}
		all = append(all, f.key)
		if !value.FieldByIndex(f.index).IsNil() {
			set = append(set, f.key)
		}
	}
	return set, all
}

// compare orders paths as they stand in the file.
func (r *rules) compare(a, b string) int {
	x, y := r.nodes[a], r.nodes[b]
	return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
}

// mostRepairs bounds how many fields of one sink are told of.
const mostRepairs = 50

// options notes all that is wrong with options. They report one field at a time; what was
// reported is put right in a copy, which is then asked again.
func (r *rules) options(path string, o sink.Options) {
	o = clone(reflect.ValueOf(o)).Interface().(sink.Options)
	last, attempts := "", 0
	for range mostRepairs {
		err := o.Validate()
		if err == nil {
			return
		}
		var wrong *sink.FieldError
		if !errors.As(err, &wrong) {
			r.wrong(path, "%v", err)
			return
		}
		if wrong.Field == last {
			attempts++
		} else {
			last, attempts = wrong.Field, 0
			if at := join(path, wrong.Field); !r.spoilt(at) {
				r.wrong(at, "%v", wrong.Err)
			}
		}
		if !repair(reflect.ValueOf(&o).Elem(), wrong.Field, attempts) {
			return
		}
	}
}

// repair sets the field of a path to something that may be right: at the first attempt a
// value, at the second nothing. It reports whether there is more to try.
func repair(of reflect.Value, path string, attempt int) bool {
	field, ok := walk(of, path)
	if !ok || attempt > 1 {
		return false
	}
	field.SetZero()
	if attempt == 1 {
		return true
	}
	switch {
	case field.Type() == reflect.TypeFor[sink.Secret]():
		field.Set(reflect.ValueOf(sink.NewSecret("https://example.com")))
	case field.Type() == reflect.TypeFor[sink.SecretRef]():
		field.Set(reflect.ValueOf(sink.SecretRef{File: "x"}))
	case field.Kind() == reflect.String:
		field.SetString("x")
	}
	return true
}

// walk returns the field of a path such as webhook.headers[0].name.
func walk(of reflect.Value, path string) (reflect.Value, bool) {
	for step := range strings.SplitSeq(path, ".") {
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		key, position, isIndexed := strings.Cut(step, "[")
		if of.Kind() != reflect.Struct {
			return reflect.Value{}, false
		}
		var ok bool
		if of, ok = fieldOf(of, key); !ok {
			return reflect.Value{}, false
		}
		if !isIndexed {
			continue
		}
		i, err := strconv.Atoi(strings.TrimSuffix(position, "]"))
		if err != nil || of.Kind() != reflect.Slice || i < 0 || i >= of.Len() {
			return reflect.Value{}, false
		}
		of = of.Index(i)
	}
	return of, true
}

// clone copies a value with the structs and lists that it points to.
func clone(of reflect.Value) reflect.Value {
	copied := reflect.New(of.Type()).Elem()
	copied.Set(of)
	switch of.Kind() {
	case reflect.Pointer:
		if !of.IsNil() && of.Type().Elem().Kind() == reflect.Struct {
			copied.Set(reflect.New(of.Type().Elem()))
			copied.Elem().Set(clone(of.Elem()))
		}
	case reflect.Slice:
		if !of.IsNil() {
			copied.Set(reflect.MakeSlice(of.Type(), of.Len(), of.Len()))
			for i := range of.Len() {
				copied.Index(i).Set(clone(of.Index(i)))
			}
		}
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Type().Field(i).IsExported() {
				copied.Field(i).Set(clone(of.Field(i)))
			}
		}
	default: // points to nothing
	}
	return copied
}

// sinkNames returns the names of all sinks.
func (c *Config) sinkNames() []string {
	var names []string
	for _, s := range c.Sinks {
		names = append(names, s.Name)
	}
	return names
}
