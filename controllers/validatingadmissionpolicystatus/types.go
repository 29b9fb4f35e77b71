// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// objects are the object types of an environment: their fields, by the names of the types.
type objects map[string]map[string]*cel.Type

// typeOf returns the type of values with a schema, nil for values that expressions do not see. It
// adds the object types that it names. root says that the values are whole objects of a kind.
// Source: k8s.io/apiserver/pkg/cel/common, SchemaDeclType, and pkg/cel, MaybeAssignTypeName.
func (o objects) typeOf(s *Schema, name string, root bool) *cel.Type {
	if s == nil {
		return nil
	}
	if s.IntOrString || s.Format == "int-or-string" {
		return cel.DynType
	}
	if root {
		s = s.withMetadata()
	}
	switch s.Type {
	case "array":
		if items := o.typeOf(s.Items, name+".@idx", s.Items != nil && s.Items.Embedded); items != nil {
			return cel.ListType(items)
		}
	case "object":
		if values := s.Additional.Schema; values != nil {
			if of := o.typeOf(values, name+".@elem", values.Embedded); of != nil {
				return cel.MapType(cel.StringType, of)
			}
			return nil
		}
		fields := map[string]*cel.Type{}
		for property, of := range s.Properties {
			escaped, ok := escape(property)
			if !ok {
				continue
			}
			if t := o.typeOf(of, name+"."+escaped, of != nil && of.Embedded); t != nil {
				fields[escaped] = t
			}
		}
		o[name] = fields
		return cel.ObjectType(name)
	case "string":
		switch s.Format {
		case "byte":
			return cel.BytesType
		case "duration":
			return cel.DurationType
		case "date", "date-time":
			return cel.TimestampType
		}
		return cel.StringType
	case "boolean":
		return cel.BoolType
	case "number":
		return cel.DoubleType
	case "integer":
		return cel.IntType
	}
	return nil
}

// withMetadata returns the schema of a whole object. Expressions may read its kind, apiVersion,
// metadata.name and metadata.generateName whether or not its schema has them.
// Source: k8s.io/apiserver/pkg/cel/common, WithTypeAndObjectMeta.
func (s *Schema) withMetadata() *Schema {
	text := func(of map[string]*Schema, names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return of[name] == nil || of[name].Type != "string" })
	}
	meta := s.Properties["metadata"]
	if text(s.Properties, "kind", "apiVersion") && meta != nil && meta.Type == "object" && text(meta.Properties, "name", "generateName") {
		return s
	}
	whole := *s
	if whole.Properties = maps.Clone(s.Properties); whole.Properties == nil {
		whole.Properties = map[string]*Schema{}
	}
	whole.Properties["kind"] = &Schema{Type: "string"}
	whole.Properties["apiVersion"] = &Schema{Type: "string"}
	whole.Properties["metadata"] = &Schema{Type: "object", Properties: map[string]*Schema{
		"name": {Type: "string"}, "generateName": {Type: "string"},
	}}
	return &whole
}

// keywords are words of the language, which no field has as its name.
// Source: k8s.io/apiserver/pkg/cel, celReservedSymbols.
var keywords = []string{
	"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
	"import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
}

// escape returns the name that a field has in expressions, false for a field that has none.
// Source: k8s.io/apiserver/pkg/cel, Escape.
func escape(field string) (string, bool) {
	if slices.Contains(keywords, field) {
		return "__" + field + "__", true
	}
	if field == "" || field[0] >= '0' && field[0] <= '9' {
		return "", false
	}
	for _, c := range field {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("_-./", c) {
			return "", false
		}
	}
	return strings.NewReplacer("__", "__underscores__", ".", "__dot__", "-", "__dash__", "/", "__slash__").Replace(field), true
}

// provider has the object types of an environment, beside those that the language has.
type provider struct {
	types.Provider
	objects objects
}

// FindStructType implements types.Provider.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if _, known := p.objects[name]; known {
		return types.NewTypeTypeWithParam(cel.ObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider. No expression can make an object.
func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	if _, known := p.objects[name]; known {
		return nil, false
	}
	return p.Provider.FindStructFieldNames(name)
}

// FindStructFieldType implements types.Provider.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	fields, known := p.objects[name]
	if !known {
		return p.Provider.FindStructFieldType(name, field)
	}
	t := fields[field]
	if t == nil && slices.Contains(keywords, field) {
		t = fields["__"+field+"__"]
	}
	if t == nil {
		return nil, false
	}
	return &types.FieldType{Type: t}, true
}
