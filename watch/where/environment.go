// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
)

// The names of the types of event. The checker knows their fields; the interpreter reads maps.
const (
	eventType   = "Event"
	fieldType   = "Field"
	authorType  = "Author"
	troubleType = "Trouble"
)

// shape has the fields of event's types for the checker. [variables.event] makes the values.
var shape = map[string]map[string]*types.Type{
	eventType: {
		"id": types.StringType, "time": types.TimestampType, "verb": types.StringType,
		"apiVersion": types.StringType, "group": types.StringType, "kind": types.StringType, "resource": types.StringType,
		"namespaced": types.BoolType, "namespace": types.StringType, "name": types.StringType,
		"uid": types.StringType, "resourceVersion": types.StringType,
		"classes": types.NewListType(types.StringType),
		"fields":  types.NewListType(types.NewObjectType(fieldType)),
		"authors": types.NewListType(types.NewObjectType(authorType)),
		"trouble": types.NewListType(types.NewObjectType(troubleType)),
		"missed":  types.BoolType, "stale": types.BoolType, "initial": types.BoolType,
		"merged": types.IntType, "since": types.TimestampType, "summary": types.StringType,
	},
	fieldType: {
		"path": types.StringType, "op": types.StringType, "from": types.DynType, "to": types.DynType,
		"class": types.StringType, "hidden": types.BoolType,
	},
	authorType: {
		"manager": types.StringType, "operation": types.StringType, "subresource": types.StringType,
		"time": types.TimestampType,
	},
	troubleType: {
		"about": types.StringType, "reason": types.StringType, "message": types.StringType,
		"exitCode": types.IntType, "restarts": types.IntType, "since": types.TimestampType,
	},
}

// knownTypes adds the types of shape to those of CEL. Fields have no getter, so that the
// interpreter reads values of these types as maps.
type knownTypes struct{ types.Provider }

func (k *knownTypes) FindStructType(name string) (*types.Type, bool) {
	if shape[name] != nil {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return k.Provider.FindStructType(name)
}

func (k *knownTypes) FindStructFieldNames(name string) ([]string, bool) {
	fields, ok := shape[name]
	if !ok {
		return k.Provider.FindStructFieldNames(name)
	}
	return sortedKeys(fields), true
}

func (k *knownTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	fields, ok := shape[name]
	if !ok {
		return k.Provider.FindStructFieldType(name, field)
	}
	t, ok := fields[field]
	return &types.FieldType{Type: t}, ok
}

// environment is what conditions are compiled in. Formatting texts is left out: a width in a
// format can ask for any length. So are functions that came after these versions.
func environment() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	if err := registry.RegisterType(types.OptionalType); err != nil {
		return nil, err
	}
	options := []cel.EnvOption{
		cel.Variable("event", cel.ObjectType(eventType)),
		cel.Variable("old", cel.DynType), cel.Variable("new", cel.DynType), cel.Variable("object", cel.DynType),
		cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		ext.Strings(ext.StringsVersion(0)), ext.Lists(ext.ListsVersion(2)), ext.Sets(),
	}
	options = append(options, kubernetesLists()...)
	// Last: options that register types of their own do so in a registry, and in no other provider.
	return cel.NewEnv(append(options, cel.CustomTypeProvider(&knownTypes{Provider: registry}), cel.CustomTypeAdapter(registry))...)
}
