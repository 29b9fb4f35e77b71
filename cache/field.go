// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// The fields by which objects of every kind can be selected.
const (
	fieldName      = "metadata.name"
	fieldNamespace = "metadata.namespace"
)

// fieldOf returns what a server takes for the value of a field of an object, when it
// compares it with a field selector, and whether that is known here.
//
// For nearly all fields that can be selected by, it is the text of the field of that name
// in the object's JSON. Those of Events are put together by the server.
func fieldOf(o object.Object, kind object.Ref, field string) (text string, known bool) {
	switch field {
	case fieldName:
		return o.GetName(), true
	case fieldNamespace:
		return o.GetNamespace(), true
	}
	path := strings.Split(field, ".")
	if _, only := o.(*metav1.PartialObjectMetadata); only || kind.Kind == "Event" || path[0] == "metadata" {
		return "", false
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		value, found, err := unstructured.NestedFieldNoCopy(u.Object, path...)
		if err != nil || !found {
			return "", false
		}
		return scalar(reflect.ValueOf(value))
	}
	value, ok := below(reflect.ValueOf(o), path)
	if !ok {
		return "", false
	}
	// Zero numbers and booleans of a custom kind may be those that its JSON leaves out, of
	// which the text is another one.
	builtin := client.Builtin(schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
	if value.Kind() != reflect.String && value.IsZero() && !builtin {
		return "", false
	}
	return scalar(value)
}

// below follows a path of JSON names. Of a string that a pointer leaves out it returns the
// empty one; a pointer that leaves out more is not followed.
func below(v reflect.Value, path []string) (reflect.Value, bool) {
	for {
		for v.Kind() == reflect.Pointer {
			if !v.IsNil() {
				v = v.Elem()
			} else if v.Type().Elem().Kind() == reflect.String && len(path) == 0 {
				v = reflect.Zero(v.Type().Elem())
			} else {
				return v, false
			}
		}
		if len(path) == 0 {
			return v, true
		}
		if v.Kind() != reflect.Struct {
			return v, false
		}
		var ok bool
		if v, ok = jsonField(v, path[0]); !ok {
			return v, false
		}
		path = path[1:]
	}
}

// jsonField returns the field of a struct that has a name in its JSON.
func jsonField(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name {
			return v.Field(i), true
		}
		if tag == "" && f.Anonymous && f.Type.Kind() == reflect.Struct {
			if inner, ok := jsonField(v.Field(i), name); ok {
				return inner, true
			}
		}
	}
	return reflect.Value{}, false
}

// scalar is the text of a value that is no list, map or struct.
func scalar(v reflect.Value) (string, bool) {
	switch v.Kind() { //nolint:exhaustive // the others have no text that a selector could name
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprint(v.Interface()), true
	}
	return "", false
}
