// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Schema says how the protobuf messages of a built-in kind are JSON trees. [SchemaOf] makes one of the Go type, whose struct tags
// have both the numbers of protobuf and the names of JSON. It is safe for concurrent use.
type Schema struct {
	typ      reflect.Type // a struct, or the slice of a message that stands for a list
	fields   []schemaField
	byNumber []int8 // position in fields and 1; 0: there is none
	defaults []schemaDefault
}

// schemaField is a field of a message.
type schemaField struct {
	name    string
	shape   shape
	message *Schema // of messageShape
	list    bool
	mapped  bool // a map from texts to the shape
	inline  bool // the fields of the message are those of the one around it
	pointer bool
	omit    bool // omitempty
}

// schemaDefault is what JSON has for a field that the message does not have.
type schemaDefault struct {
	name    string
	value   any     // a scalar or nil
	message *Schema // not nil: a message without fields
}

// shape is the type of a value.
type shape uint8

const (
	textShape shape = iota
	bytesShape
	boolShape
	intShape
	int32Shape
	floatShape
	messageShape
	listShape // a message that stands for a list: its elements are field 1
	timeShape
	microTimeShape
	durationShape
	quantityShape
	intOrStringShape
	rawShape // bytes of JSON in field 1
	fieldsShape
)

// special are the types that write JSON in a way of their own.
var special = map[reflect.Type]shape{
	reflect.TypeFor[metav1.Time]():          timeShape,
	reflect.TypeFor[metav1.MicroTime]():     microTimeShape,
	reflect.TypeFor[metav1.Duration]():      durationShape,
	reflect.TypeFor[resource.Quantity]():    quantityShape,
	reflect.TypeFor[intstr.IntOrString]():   intOrStringShape,
	reflect.TypeFor[runtime.RawExtension](): rawShape,
	reflect.TypeFor[metav1.FieldsV1]():      fieldsShape,
}

// mostNumber is the largest number of a field that is looked up. Those of Kubernetes are below 100.
const mostNumber = 1024

var schemas sync.Map // by reflect.Type; *Schema, or nil for a type that has none

// SchemaOf returns the schema of a Go type of the API, or false if the type has something that only its own methods can
// write as JSON. typ is a struct with generated methods for protobuf, or a pointer to one.
func SchemaOf(typ reflect.Type) (*Schema, bool) {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if known, ok := schemas.Load(typ); ok {
		s, _ := known.(*Schema)
		return s, s != nil
	}
	var s *Schema
	if reflect.PointerTo(typ).Implements(reflect.TypeFor[unmarshaler]()) {
		s, _ = make(schemaReader).read(typ)
	}
	schemas.Store(typ, s)
	return s, s != nil
}

// schemaReader has the types that were read, so that one that contains itself ends.
type schemaReader map[reflect.Type]*Schema

var errNoSchema = errors.New("only the type's own methods can write it as JSON")

func (r schemaReader) read(typ reflect.Type) (*Schema, error) {
	if s := r[typ]; s != nil {
		return s, nil
	}
	s := &Schema{typ: typ}
	r[typ] = s
	if typ.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%v: %w", typ, errNoSchema)
	}
	for f := range typ.Fields() {
		if err := r.field(s, f); err != nil {
			return nil, fmt.Errorf("%v: %w", typ, err)
		}
	}
	return s, nil
}

func (r schemaReader) field(s *Schema, f reflect.StructField) error {
	tag := strings.Split(f.Tag.Get("json"), ",")
	proto, isProto := f.Tag.Lookup("protobuf")
	inline := f.Anonymous && tag[0] == ""
	if !isProto {
		if inline && f.Type == reflect.TypeFor[metav1.TypeMeta]() {
			return nil // it is in the envelope
		}
		return fmt.Errorf("%s: %w", f.Name, errNoSchema)
	}
	parts := strings.Split(proto, ",")
	if len(parts) < 2 || tag[0] == "" && !inline || tag[0] == "-" {
		return fmt.Errorf("%s: %w", f.Name, errNoSchema)
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil || number < 1 || number > mostNumber || len(s.fields) == 127 {
		return fmt.Errorf("%s: %w", f.Name, errNoSchema)
	}
	field := schemaField{name: tag[0], inline: inline}
	omitZero := false
	for _, option := range tag[1:] {
		switch option {
		case "omitempty":
			field.omit = true
		case "omitzero":
			omitZero = true
		case "inline":
		default:
			return fmt.Errorf("%s: %w", f.Name, errNoSchema)
		}
	}
	if err := r.value(&field, f.Type); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if omitZero && (field.shape != timeShape || field.pointer) || inline && (field.shape != messageShape || field.pointer || field.list || field.mapped) {
		return fmt.Errorf("%s: %w", f.Name, errNoSchema)
	}
	if field.shape == timeShape && !field.pointer && !field.list && !field.mapped {
		field.omit = omitZero // omitempty leaves out no struct
	}
	for len(s.byNumber) <= number {
		s.byNumber = append(s.byNumber, 0)
	}
	s.fields = append(s.fields, field)
	s.byNumber[number] = int8(len(s.fields))
	s.addDefault(&field)
	return nil
}

// addDefault notes what JSON has for a field that is not there.
func (s *Schema) addDefault(f *schemaField) {
	switch {
	case f.inline:
		s.defaults = append(s.defaults, f.message.defaults...)
	case f.omit && (f.pointer || f.list || f.mapped || f.shape <= floatShape || f.shape == listShape || f.shape == timeShape):
	case f.pointer || f.list || f.mapped:
		s.defaults = append(s.defaults, schemaDefault{name: f.name})
	case f.shape == messageShape:
		s.defaults = append(s.defaults, schemaDefault{name: f.name, message: f.message})
	default:
		s.defaults = append(s.defaults, schemaDefault{name: f.name, value: zeroOf[f.shape]})
	}
}

// zeroOf are the zero values of the shapes as JSON has them. Where it is absent, it is nil.
var zeroOf = [...]any{
	textShape: "", boolShape: false, intShape: int64(0), int32Shape: int64(0), floatShape: int64(0),
	durationShape: "0s", quantityShape: "0", intOrStringShape: int64(0), fieldsShape: nil,
}

// value sets the shape of a field.
func (r schemaReader) value(f *schemaField, typ reflect.Type) error {
	isBytes := typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Uint8
	switch kind := typ.Kind(); {
	case kind == reflect.Pointer:
		f.pointer = true
		typ = typ.Elem()
	case kind == reflect.Map:
		if typ.Key().Kind() != reflect.String || writesItself(typ) || writesItself(typ.Key()) {
			return errNoSchema
		}
		f.mapped = true
		typ = typ.Elem()
	case kind == reflect.Slice && !isBytes && !reflect.PointerTo(typ).Implements(reflect.TypeFor[unmarshaler]()):
		if writesItself(typ) {
			return errNoSchema
		}
		f.list = true
		if typ = typ.Elem(); typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
	}
	return r.single(f, typ)
}

func (r schemaReader) single(f *schemaField, typ reflect.Type) (err error) {
	if shape, ok := special[typ]; ok {
		f.shape = shape
		return nil
	}
	if writesItself(typ) {
		return errNoSchema
	}
	switch typ.Kind() {
	case reflect.String:
		f.shape = textShape
	case reflect.Bool:
		f.shape = boolShape
	case reflect.Int32:
		f.shape = int32Shape
	case reflect.Int64:
		f.shape = intShape
	case reflect.Float64:
		f.shape = floatShape
	case reflect.Struct:
		f.shape = messageShape
		f.message, err = r.read(typ)
	case reflect.Slice:
		switch typ.Elem().Kind() {
		case reflect.Uint8:
			f.shape = bytesShape
		case reflect.String:
			f.shape = listShape
			if writesItself(typ.Elem()) || !reflect.PointerTo(typ).Implements(reflect.TypeFor[unmarshaler]()) {
				return errNoSchema
			}
		default:
			return errNoSchema
		}
	default:
		return errNoSchema
	}
	return err
}

// writesItself reports whether a type has methods that write JSON.
func writesItself(typ reflect.Type) bool {
	marshaler, text := reflect.TypeFor[json.Marshaler](), reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
	return typ.Implements(marshaler) || reflect.PointerTo(typ).Implements(marshaler) || typ.Implements(text) || reflect.PointerTo(typ).Implements(text)
}

// field returns the field of a number, nil if the type has none.
func (s *Schema) field(number protowire.Number) *schemaField {
	if int(number) >= len(s.byNumber) || s.byNumber[number] == 0 {
		return nil
	}
	return &s.fields[s.byNumber[number]-1]
}

// slow decodes a message by the type's own methods.
func (s *Schema) slow(raw []byte) (map[string]any, error) {
	o, _ := reflect.TypeAssert[unmarshaler](reflect.New(s.typ))
	if err := o.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("decoding protobuf into %T: %w", o, err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("writing %T as JSON: %w", o, err)
	}
	return decodeTree(text)
}
