// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package handlername

import (
	"cmp"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"
)

// Of returns the name of a handler: that of its type, with the path of the package, or, for
// cache.ResourceEventHandlerFuncs, what the names of its functions have in common.
// Source: k8s.io/client-go/tools/cache, nameForHandler.
func Of(handler cache.ResourceEventHandler) string {
	switch h := handler.(type) {
	case cache.ResourceEventHandlerFuncs:
		return cmp.Or(ofFunctions(h.AddFunc, h.UpdateFunc, h.DeleteFunc), fmt.Sprintf("%T", h))
	case *cache.ResourceEventHandlerFuncs:
		if h != nil {
			return Of(*h)
		}
	}
	t := reflect.TypeOf(handler)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Name() == "" {
		return fmt.Sprintf("%T", handler)
	}
	if t.PkgPath() == "" {
		return t.Name()
	}
	return t.PkgPath() + "." + t.Name()
}

// ofFunctions returns the place where all functions are defined, such as "main" or "main.run", or
// their names if there are several.
func ofFunctions(functions ...any) string {
	var names, places []string
	for _, f := range functions {
		found := runtime.FuncForPC(reflect.ValueOf(f).Pointer())
		if found == nil {
			continue // the handler does not have this function
		}
		place := found.Name()
		if dot := strings.LastIndexByte(place, '.'); dot > 0 {
			place = place[:dot]
		}
		names, places = append(names, found.Name()), append(places, place)
	}
	if places = slices.Compact(places); len(places) == 1 {
		return places[0]
	}
	return strings.Join(names, "+")
}
