// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/base64"
	stdjson "encoding/json"
	"math"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
)

// DecodeTree decodes a message into the tree that the server's JSON of the object has, without apiVersion and kind: maps, slices,
// strings, int64, float64, bool and nil. A field that the Go type does not have, since the server is newer, is there by
// its number: "(field 45)", with its bytes in base64. The tree keeps nothing of the bytes.
func (s *Schema) DecodeTree(raw []byte) (map[string]any, error) { return s.decode(raw, false) }

// DecodeTreeLazily is as [Schema.DecodeTree], and may leave the fieldsV1 of managedFields as they are: they are json.RawMessage then.
func (s *Schema) DecodeTreeLazily(raw []byte) (map[string]any, error) { return s.decode(raw, true) }

func (s *Schema) decode(raw []byte, lazy bool) (map[string]any, error) {
	p, _ := messageTrees.Get().(*messageTree)
	defer p.close()
	p.lazy = lazy
	tree := map[string]any{}
	if p.message(s, raw, tree, 0) {
		return tree, nil
	}
	return s.slow(raw)
}

// DecodeTrees decodes two states of an object as [Schema.DecodeTree] does. What both states have at the same place is decoded once, and
// is the same map or slice in both trees. So the caller must not write to them. The fieldsV1 of managedFields are json.RawMessage,
// not decoded: they are half of many objects, and readers seldom need them.
//
// A profile of "setpoint watch" showed 28 % of the CPU for a change in decoding two states from JSON, and 25 % in receiving that JSON, which
// is twice as long as the message. In a message the length of each part stands before it, so that equal parts are compared and passed over as bytes.
func (s *Schema) DecodeTrees(before, after []byte) (old, new map[string]any, err error) { //nolint:predeclared // old and new are the words
	p, _ := messageTrees.Get().(*messageTree)
	defer p.close()
	p.lazy = true
	old, new = map[string]any{}, map[string]any{}
	if p.pair(s, before, after, old, new, 0) {
		return old, new, nil
	}
	if old, err = s.DecodeTree(before); err != nil {
		return nil, nil, err
	}
	new, err = s.DecodeTree(after)
	return old, new, err
}

var messageTrees = sync.Pool{New: func() any {
	return &messageTree{texts: treeReader{treeTexts: newTreeTexts()}, quantities: map[string]string{}}
}}

// messageTree decodes messages. Its methods return false for what the type's own methods have to decode.
type messageTree struct {
	texts      treeReader
	lazy       bool // fieldsV1 are not decoded
	fields     []wireField
	elements   []any
	quantities map[string]string // canonical forms
}

// wireField is a field of a message as it is encoded.
type wireField struct {
	number   protowire.Number
	typ      protowire.Type
	from, to int    // in the message
	varint   uint64 // or the bits of a fixed number
	value    []byte
}

// mostPlaces is for how many fields, and for how many elements, a decoder that waits for its next bytes keeps room. A list
// may have a million elements, of two bytes each; decoders wait for as long as the process lives.
const mostPlaces = 4096

// close forgets the bytes, so that a decoder that waits for the next ones keeps none alive.
func (p *messageTree) close() {
	p.fields, p.elements = roomOf(p.fields), roomOf(p.elements)
	clear(p.fields[:cap(p.fields)])
	messageTrees.Put(p)
}

// roomOf returns a slice without elements, which has the room of s unless that is much.
func roomOf[T any](s []T) []T {
	if cap(s) > mostPlaces {
		return nil
	}
	return s[:0]
}

// parse appends the fields of a message. A server writes them by their numbers; other messages are none.
func (p *messageTree) parse(data []byte) bool {
	last := protowire.Number(0)
	for at := 0; at < len(data); {
		number, typ, n := protowire.ConsumeTag(data[at:])
		if n < 0 || number < last {
			return false
		}
		f := wireField{number: number, typ: typ, from: at}
		at += n
		switch typ {
		case protowire.BytesType:
			f.value, n = protowire.ConsumeBytes(data[at:])
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(data[at:])
		case protowire.Fixed64Type:
			f.varint, n = protowire.ConsumeFixed64(data[at:])
		default:
			n = protowire.ConsumeFieldValue(number, typ, data[at:])
		}
		if n < 0 {
			return false
		}
		at += n
		f.to = at
		last = number
		p.fields = append(p.fields, f)
	}
	return true
}

// run returns how many fields from one on have its number.
func run(fields []wireField) int {
	n := 1
	for n < len(fields) && fields[n].number == fields[0].number {
		n++
	}
	return n
}

// open gives a message what it has without fields.
func (s *Schema) open(into map[string]any) {
	for i := range s.defaults {
		d := &s.defaults[i]
		if d.message == nil {
			into[d.name] = d.value
			continue
		}
		empty := map[string]any{}
		d.message.open(empty)
		into[d.name] = empty
	}
}

// message decodes a message.
func (p *messageTree) message(s *Schema, data []byte, into map[string]any, depth int) bool {
	s.open(into)
	return p.inline(s, data, into, depth)
}

// inline decodes a message into one that has its defaults.
func (p *messageTree) inline(s *Schema, data []byte, into map[string]any, depth int) bool {
	first := len(p.fields)
	ok := depth < treeNesting && p.parse(data)
	for at, end := first, len(p.fields); ok && at < end; {
		n := run(p.fields[at:end])
		ok = p.set(s, data, p.fields[at:at+n], into, depth)
		at += n
	}
	p.fields = p.fields[:first]
	return ok
}

// unknown is the name of a field that the type does not have.
func unknown(number protowire.Number) string {
	return "(field " + strconv.Itoa(int(number)) + ")"
}

// set decodes the fields of one number.
func (p *messageTree) set(s *Schema, data []byte, fields []wireField, into map[string]any, depth int) bool {
	f := s.field(fields[0].number)
	switch {
	case f == nil:
		into[unknown(fields[0].number)] = base64.StdEncoding.EncodeToString(data[fields[0].from:fields[len(fields)-1].to])
		return true
	case f.list:
		from := len(p.elements)
		ok := true
		for i := 0; ok && i < len(fields); i++ {
			var element any
			if element, ok = p.value(f, &fields[i], depth); ok {
				p.elements = append(p.elements, element)
			}
		}
		if ok {
			into[f.name] = append(make([]any, 0, len(p.elements)-from), p.elements[from:]...)
		}
		clear(p.elements[from:])
		p.elements = p.elements[:from]
		return ok
	case f.mapped:
		entries := make(map[string]any, len(fields))
		into[f.name] = entries
		for i := range fields {
			if !p.entry(f, &fields[i], entries, depth) {
				return false
			}
		}
		return true
	case len(fields) > 1:
		return false // decoders merge them
	case f.inline:
		return fields[0].typ == protowire.BytesType && p.inline(f.message, fields[0].value, into, depth+1)
	}
	value, ok := p.value(f, &fields[0], depth)
	if ok {
		f.put(into, value)
	}
	return ok
}

// put sets a field that is no list and no map.
func (f *schemaField) put(into map[string]any, value any) {
	if f.omit && !f.pointer && (f.shape <= floatShape && (value == zeroOf[f.shape] || value == "") || f.shape == timeShape && value == nil) {
		return
	}
	into[f.name] = value
}

// entry decodes an entry of a map.
func (p *messageTree) entry(f *schemaField, entry *wireField, into map[string]any, depth int) bool {
	if entry.typ != protowire.BytesType {
		return false
	}
	first := len(p.fields)
	defer func() { p.fields = p.fields[:first] }()
	if !p.parse(entry.value) {
		return false
	}
	parts := p.fields[first:]
	if len(parts) == 1 && parts[0].number == 1 && f.shape == bytesShape {
		parts = append(parts, wireField{number: 2, typ: protowire.BytesType}) // one without bytes
	}
	if len(parts) != 2 || parts[0].number != 1 || parts[0].typ != protowire.BytesType || parts[1].number != 2 || !utf8.Valid(parts[0].value) {
		return false
	}
	key, value := p.texts.name(parts[0].value), parts[1]
	decoded, ok := p.value(f, &value, depth)
	into[key] = decoded
	return ok
}

// value decodes one value.
func (p *messageTree) value(f *schemaField, from *wireField, depth int) (any, bool) {
	want := protowire.BytesType
	switch f.shape { //nolint:exhaustive // all others are bytes
	case boolShape, intShape, int32Shape:
		want = protowire.VarintType
	case floatShape:
		want = protowire.Fixed64Type
	}
	if from.typ != want {
		return nil, false
	}
	switch f.shape { //nolint:exhaustive // the others are messages
	case textShape:
		if !utf8.Valid(from.value) {
			return nil, false // JSON has other characters instead
		}
		return p.texts.word(from.value), true
	case bytesShape:
		return base64.StdEncoding.EncodeToString(from.value), true
	case boolShape:
		return from.varint != 0, true
	case intShape:
		return int64(from.varint), true
	case int32Shape:
		return int64(int32(from.varint)), true
	case floatShape:
		text, err := stdjson.Marshal(math.Float64frombits(from.varint))
		if err != nil {
			return nil, false
		}
		return numberOf(text)
	case messageShape:
		tree := make(map[string]any, len(f.message.defaults)+4)
		return tree, p.message(f.message, from.value, tree, depth+1)
	}
	return p.special(f.shape, from.value)
}

// parts are the fields of a small message: of each number below 4 the last, and nothing else.
func (p *messageTree) parts(data []byte) (parts [4]wireField, ok bool) {
	first := len(p.fields)
	defer func() { p.fields = p.fields[:first] }()
	if !p.parse(data) {
		return parts, false
	}
	for _, f := range p.fields[first:] {
		if f.number > 3 || parts[f.number].number != 0 {
			return parts, false
		}
		parts[f.number] = f
	}
	return parts, true
}

// special decodes a message whose JSON is none of its fields.
func (p *messageTree) special(shape shape, data []byte) (any, bool) {
	if shape == listShape {
		return p.items(data)
	}
	parts, ok := p.parts(data)
	if !ok {
		return nil, false
	}
	is := func(number int, typ protowire.Type) bool {
		return parts[number].number == 0 || parts[number].typ == typ
	}
	switch shape { //nolint:exhaustive // the others are no messages
	case timeShape, microTimeShape:
		if !is(1, protowire.VarintType) || !is(2, protowire.VarintType) || parts[3].number != 0 {
			return nil, false
		}
		if len(data) == 0 {
			return nil, true
		}
		return instantOf(shape, int64(parts[1].varint), int32(parts[2].varint)), true
	case durationShape:
		if !is(1, protowire.VarintType) || parts[2].number != 0 || parts[3].number != 0 {
			return nil, false
		}
		return time.Duration(int64(parts[1].varint)).String(), true
	case quantityShape:
		if !is(1, protowire.BytesType) || parts[2].number != 0 || parts[3].number != 0 {
			return nil, false
		}
		return p.quantity(parts[1].value)
	case intOrStringShape:
		if !is(1, protowire.VarintType) || !is(2, protowire.VarintType) || !is(3, protowire.BytesType) {
			return nil, false
		}
		switch parts[1].varint {
		case 0:
			return int64(int32(parts[2].varint)), true
		case 1:
			return string(parts[3].value), utf8.Valid(parts[3].value)
		}
		return nil, false
	case rawShape, fieldsShape:
		if !is(1, protowire.BytesType) || parts[2].number != 0 || parts[3].number != 0 {
			return nil, false
		}
		return p.raw(shape, parts[1])
	}
	return nil, false
}

// instantOf is a time as JSON has it.
func instantOf(shape shape, seconds int64, nanos int32) any {
	layout, at := time.RFC3339, time.Unix(seconds, 0)
	if shape == microTimeShape {
		layout, at = metav1.RFC3339Micro, time.Unix(seconds, int64(time.Duration(nanos).Truncate(time.Microsecond)))
	}
	if at.IsZero() {
		return nil
	}
	return at.UTC().Format(layout)
}

// items decodes a message that stands for a list of texts.
func (p *messageTree) items(data []byte) (any, bool) {
	first := len(p.fields)
	defer func() { p.fields = p.fields[:first] }()
	if len(data) == 0 || !p.parse(data) {
		return nil, false // it is null in one place and an empty list in another
	}
	list := make([]any, 0, len(p.fields)-first)
	for _, f := range p.fields[first:] {
		if f.number != 1 || f.typ != protowire.BytesType || !utf8.Valid(f.value) {
			return nil, false
		}
		list = append(list, p.texts.word(f.value))
	}
	return list, true
}

// quantity returns the canonical form of a quantity.
func (p *messageTree) quantity(text []byte) (any, bool) {
	if known, ok := p.quantities[string(text)]; ok {
		return known, true
	}
	q, err := resource.ParseQuantity(string(text))
	if err != nil {
		return nil, false
	}
	if len(p.quantities) == knownWords {
		clear(p.quantities)
	}
	written := q.String()
	p.quantities[string(text)] = written
	return written, true
}

// raw decodes bytes of JSON.
func (p *messageTree) raw(shape shape, part wireField) (any, bool) {
	switch {
	case part.number == 0:
		return nil, true
	case shape == fieldsShape && (len(part.value) == 0 || part.value[0] != '{'):
		return nil, false
	case shape == fieldsShape && p.lazy:
		return stdjson.RawMessage(append([]byte(nil), part.value...)), true
	case shape == fieldsShape:
		tree, err := decodeTree(part.value)
		return tree, err == nil
	}
	var value any
	err := json.UnmarshalCaseSensitivePreserveInts(part.value, &value)
	return value, err == nil && len(part.value) > 0
}
