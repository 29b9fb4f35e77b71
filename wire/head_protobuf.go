// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The fields of metav1.ObjectMeta that are read.
// Source: k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.
const (
	fieldName            = 1
	fieldNamespace       = 3
	fieldUID             = 5
	fieldResourceVersion = 6
	fieldGeneration      = 7
	fieldCreated         = 8
	fieldDeleted         = 9
	fieldLabels          = 11
	fieldAnnotations     = 12
	fieldOwners          = 13
	fieldFinalizers      = 14
	fieldManagedFields   = 17
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

func (h *Head) readProtobuf() error {
	top := message{data: h.raw}
	found := false
	for top.next() {
		if top.number != 1 {
			continue
		}
		if found {
			return fmt.Errorf("%w: the object has its metadata twice", ErrMalformed)
		}
		found = true
		if !top.want(protowire.BytesType) {
			break
		}
		h.metadata = span{top.at - len(top.value), top.at}
		_, _, tag := protowire.ConsumeTag(h.raw[top.from:])
		h.field = span{top.from + tag, h.metadata.from}
		if err := h.readMetadata(); err != nil {
			return err
		}
	}
	return top.err
}

func (h *Head) readMetadata() error {
	base := h.metadata.from
	m := message{data: h.bytes(h.metadata)}
	for m.next() {
		switch m.number {
		case fieldName:
			h.Name = m.text()
		case fieldNamespace:
			h.Namespace = m.text()
		case fieldUID:
			h.UID = m.text()
		case fieldResourceVersion:
			h.ResourceVersion = m.text()
		case fieldGeneration:
			m.want(protowire.VarintType)
			h.Generation = int64(m.varint)
		case fieldCreated:
			h.Created = m.time()
		case fieldDeleted:
			h.Deleted = m.time()
		case fieldLabels:
			h.addLabel(m.entry())
			h.family = grow(h.family, span{base + m.from, base + m.at})
		case fieldOwners, fieldFinalizers:
			m.want(protowire.BytesType)
			h.family = grow(h.family, span{base + m.from, base + m.at})
		case fieldAnnotations:
			m.want(protowire.BytesType)
		case fieldManagedFields:
			m.want(protowire.BytesType)
			h.cut = grow(h.cut, span{base + m.from, base + m.at})
		}
	}
	return m.err
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

// each calls read with the fields of one number.
func (h *Head) each(number protowire.Number, read func(m *message) error) error {
	m := message{data: h.bytes(h.metadata)}
	for m.next() {
		if m.number == number {
			if err := read(&m); err != nil {
				return err
			}
		}
	}
	return m.err
}

func (h *Head) ownersProtobuf() ([]metav1.OwnerReference, error) {
	var owners []metav1.OwnerReference
	err := h.each(fieldOwners, func(m *message) error {
		var owner metav1.OwnerReference
		if err := owner.Unmarshal(m.value); err != nil {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		owners = append(owners, owner)
		return nil
	})
	return owners, err
}

func (h *Head) finalizersProtobuf() ([]string, error) {
	var finalizers []string
	err := h.each(fieldFinalizers, func(m *message) error {
		finalizers = append(finalizers, string(m.value))
		return nil
	})
	return finalizers, err
}

func (h *Head) annotationsProtobuf() (map[string]string, error) {
	var annotations map[string]string
	err := h.each(fieldAnnotations, func(m *message) error {
		if annotations == nil {
			annotations = map[string]string{}
		}
		key, value := m.entry()
		annotations[string(key)] = string(value)
		return nil
	})
	return annotations, err
}
