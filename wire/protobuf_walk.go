// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// message walks over the fields of an encoded message. It is stricter than the
// generated decoders, which let numbers overflow and read map entries beyond their
// end: what it accepts they accept, and read alike.
type message struct {
	data []byte
	from int // where the present field begins
	at   int // behind the present field

	number protowire.Number
	typ    protowire.Type
	value  []byte // of a length-delimited field
	varint uint64 // of a varint
	err    error
}

// next goes to the next field. It returns false at the end and upon an error.
func (m *message) next() bool {
	if m.at == len(m.data) || m.err != nil {
		return false
	}
	m.from = m.at
	number, typ, n := protowire.ConsumeTag(m.data[m.at:])
	if n < 0 {
		m.err = fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		return false
	}
	m.number, m.typ = number, typ
	m.at += n
	switch rest := m.data[m.at:]; typ {
	case protowire.BytesType:
		m.value, n = protowire.ConsumeBytes(rest)
	case protowire.VarintType:
		m.varint, n = protowire.ConsumeVarint(rest)
	default:
		n = protowire.ConsumeFieldValue(number, typ, rest)
	}
	if n < 0 {
		m.err = fmt.Errorf("%w: field %d: %w", ErrMalformed, number, protowire.ParseError(n))
		return false
	}
	m.at += n
	return true
}

// want makes another wire type than the schema's an error.
func (m *message) want(typ protowire.Type) bool {
	if m.typ != typ && m.err == nil {
		m.err = fmt.Errorf("%w: field %d has wire type %d", ErrMalformed, m.number, m.typ)
	}
	return m.err == nil
}

// text is the value of a string field.
func (m *message) text() []byte {
	if !m.want(protowire.BytesType) {
		return nil
	}
	return m.value
}

// time is the value of a metav1.Time: a Timestamp of which only the seconds count,
// or nothing, which is the zero time. Of several the last is meant.
func (m *message) time() time.Time {
	if !m.want(protowire.BytesType) || len(m.value) == 0 {
		return time.Time{}
	}
	var seconds int64
	stamp := message{data: m.value}
	for stamp.next() {
		switch stamp.number {
		case 1:
			stamp.want(protowire.VarintType)
			seconds = int64(stamp.varint)
		case 2:
			stamp.want(protowire.VarintType)
		}
	}
	m.err = stamp.err
	return time.Unix(seconds, 0).Local()
}

// entry is an entry of a map of strings. Key and value may be missing, and are
// then empty.
func (m *message) entry() (key, value []byte) {
	if !m.want(protowire.BytesType) {
		return nil, nil
	}
	entry := message{data: m.value}
	for entry.next() {
		switch entry.number {
		case 1:
			key = entry.text()
		case 2:
			value = entry.text()
		}
	}
	m.err = entry.err
	return key, value
}

func openProtobuf(body []byte) (apiVersion, kind, raw []byte, err error) {
	rest, found := bytes.CutPrefix(body, protobufMagic)
	if !found {
		return nil, nil, nil, fmt.Errorf("%w: the protobuf prefix is missing", ErrMalformed)
	}
	// runtime.Unknown: 1 typeMeta, 2 raw, 3 contentEncoding, 4 contentType.
	m := message{data: rest}
	for m.next() {
		switch m.number {
		case 1:
			apiVersion, kind, m.err = typeMeta(m.text())
		case 2:
			raw = m.text()
		case 3:
			if encoding := m.text(); len(encoding) > 0 {
				m.err = fmt.Errorf("%w: object is encoded as %q", ErrMalformed, encoding)
			}
		}
	}
	return apiVersion, kind, raw, m.err
}

// typeMeta reads runtime.TypeMeta: 1 apiVersion, 2 kind.
func typeMeta(encoded []byte) (apiVersion, kind []byte, err error) {
	m := message{data: encoded}
	for m.next() {
		switch m.number {
		case 1:
			apiVersion = m.text()
		case 2:
			kind = m.text()
		}
	}
	return apiVersion, kind, m.err
}
