// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"

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

func (h *Head) readProtobuf() error {
	top := message{data: h.raw}
	for top.next() {
		if top.number != 1 {
			continue
		}
		if top.from > 0 {
			return fmt.Errorf("%w: metadata is there twice or does not come first", ErrMalformed)
		}
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
			h.own = grow(h.own, span{base + m.from, base + m.at})
		case fieldNamespace:
			h.Namespace = m.text()
			h.own = grow(h.own, span{base + m.from, base + m.at})
		case fieldUID:
			h.UID = m.text()
			h.own = grow(h.own, span{base + m.from, base + m.at})
		case fieldResourceVersion:
			h.ResourceVersion = m.text()
			h.own = grow(h.own, span{base + m.from, base + m.at})
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
			h.own = grow(h.own, span{base + m.from, base + m.at})
		case fieldOwners, fieldFinalizers:
			m.want(protowire.BytesType)
			h.family = grow(h.family, span{base + m.from, base + m.at})
			h.own = grow(h.own, span{base + m.from, base + m.at})
		case fieldAnnotations:
			m.entry() // decoders read beyond the end of an entry that is malformed
		case fieldManagedFields:
			m.want(protowire.BytesType)
			h.cut = grow(h.cut, span{base + m.from, base + m.at})
		}
	}
	return m.err
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
