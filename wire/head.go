// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
)

// Head is the metadata of an object, read from its encoded bytes without decoding the rest.
// Make one, and pass it to [Encoding.ReadHead] for one object after the other: a Head reuses
// its memory, so reading protobuf allocates nothing.
//
// The fields of a Head point into the bytes that it was read from, or into its own memory
// where a JSON string has escapes. It is valid as long as those bytes are, and until its next
// ReadHead. One goroutine uses it.
//
// Metadata that decoders read differently, such as a label whose value is a number, is an
// error: a Head has what a full decode has, or nothing.
type Head struct {
	Namespace, Name, UID, ResourceVersion []byte

	Generation int64
	Created    time.Time // zero if unset; in the local time zone, as metav1.Time
	Deleted    time.Time // zero while the object is not being deleted

	encoding Encoding
	raw      []byte
	metadata span    // protobuf: the message, without its tag and length
	field    span    // protobuf: the length that stands before metadata
	labels   []label // ascending, each key once
	unsorted bool    // labels are not in order yet
	cut      []span  // what appendSlim leaves out
	own      []span  // protobuf: what AppendRest leaves out besides cut
	without  []span  // cut and own, merged
	family   []span  // what AppendFamily writes
	scan     scanner
	notes    span // JSON: the value of annotations
}

// span is a part of Head.raw.
type span struct{ from, to int }

func (h *Head) bytes(s span) []byte { return h.raw[s.from:s.to] }

type label struct{ key, value []byte }

// ReadHead reads the metadata of one object without envelope, as [List] and
// [WatchReader] hand it out. After an error h has no content. Owner references,
// finalizers and annotations are read by their methods only, which have errors of
// their own.
//
// In protobuf field 1 of every kind of an API server is its metadata; an object
// that has it twice, or behind another field, is refused, and so is JSON that names
// a member of metadata twice.
func (e Encoding) ReadHead(raw []byte, h *Head) error {
	h.reset()
	h.encoding, h.raw = e, raw
	var err error
	if e == Protobuf {
		err = h.readProtobuf()
	} else {
		err = h.readJSON()
	}
	if err != nil {
		h.reset()
		return fmt.Errorf("reading metadata: %w", err)
	}
	h.sortLabels()
	return nil
}

// reset empties h and keeps the memory that can be used again.
func (h *Head) reset() {
	*h = Head{labels: h.labels[:0], cut: h.cut[:0], own: h.own[:0], without: h.without[:0], family: h.family[:0], scan: h.scan}
}

// Drop empties h, which then keeps none of the bytes that it was read from in memory. It keeps its own memory for the next
// [Encoding.ReadHead].
func (h *Head) Drop() {
	h.reset()
	clear(h.labels[:cap(h.labels)])
}

func (h *Head) addLabel(key, value []byte) {
	if n := len(h.labels); n > 0 && bytes.Compare(h.labels[n-1].key, key) >= 0 {
		h.unsorted = true
	}
	h.labels = append(h.labels, label{key, value})
}

// sortLabels sorts the labels. API servers write them in order, other programs may not. Of two
// labels with one key the last one counts, in both encodings.
func (h *Head) sortLabels() {
	if !h.unsorted {
		return
	}
	slices.SortStableFunc(h.labels, func(a, b label) int { return bytes.Compare(a.key, b.key) })
	kept := h.labels[:0]
	for i, l := range h.labels {
		if i+1 == len(h.labels) || !bytes.Equal(l.key, h.labels[i+1].key) {
			kept = append(kept, l)
		}
	}
	h.labels, h.unsorted = kept, false
}

// AppendLabels appends the labels in the form of [object.Labels].
func (h *Head) AppendLabels(dst []byte) []byte {
	for _, l := range h.labels {
		dst = object.AppendLabel(dst, l.key, l.value)
	}
	return dst
}

// Owners returns the owner references, which are the caller's.
func (h *Head) Owners() ([]metav1.OwnerReference, error) {
	owners, err := pick(h, h.ownersProtobuf, h.ownersJSON)
	if err != nil {
		return nil, fmt.Errorf("reading owner references: %w", err)
	}
	return owners, nil
}

// Finalizers returns the finalizers, which are the caller's.
func (h *Head) Finalizers() ([]string, error) {
	finalizers, err := pick(h, h.finalizersProtobuf, h.finalizersJSON)
	if err != nil {
		return nil, fmt.Errorf("reading finalizers: %w", err)
	}
	return finalizers, nil
}

// Annotations returns the annotations, which are the caller's.
func (h *Head) Annotations() (map[string]string, error) {
	annotations, err := pick(h, h.annotationsProtobuf, h.annotationsJSON)
	if err != nil {
		return nil, fmt.Errorf("reading annotations: %w", err)
	}
	return annotations, nil
}

func pick[T any](h *Head, protobuf, json func() (T, error)) (T, error) {
	if h.encoding == Protobuf {
		return protobuf()
	}
	return json()
}

// AppendFamily appends the encoded labels, owner references and finalizers, which the Pods of
// one ReplicaSet have in common. Two objects whose families are equal bytes have equal labels,
// owner references and finalizers; the reverse need not hold. A cache can share them without
// decoding.
func (h *Head) AppendFamily(dst []byte) []byte {
	dst = append(dst, byte(h.encoding))
	for _, s := range h.family {
		if h.encoding == JSON { // protobuf fields say their lengths themselves
			dst = binary.AppendUvarint(dst, uint64(s.to-s.from))
		}
		dst = append(dst, h.bytes(s)...)
	}
	return dst
}

// appendSlim appends the object's bytes without managedFields. They decode to the same object
// without managedFields.
func (h *Head) appendSlim(dst []byte) []byte { return h.appendWithout(dst, h.cut) }

// AppendRest appends the bytes that a cache keeps of an object beside the Head's content.
// For protobuf it leaves out name, namespace, UID, resourceVersion, labels, owner references
// and finalizers: the cache sets them in the decoded object. It leaves out managedFields, in
// both encodings, unless managed is set.
func (h *Head) AppendRest(dst []byte, managed bool) []byte {
	switch {
	case h.encoding == JSON && managed:
		return append(dst, h.raw...)
	case h.encoding == JSON:
		return h.appendSlim(dst)
	case managed:
		return h.appendWithout(dst, h.own)
	}
	// Both lists are in the order of the bytes: merge them.
	h.without = h.without[:0]
	cut, own := h.cut, h.own
	for len(cut) > 0 || len(own) > 0 {
		next := &cut
		if len(cut) == 0 || len(own) > 0 && own[0].from < cut[0].from {
			next = &own
		}
		h.without = grow(h.without, (*next)[0])
		*next = (*next)[1:]
	}
	return h.appendWithout(dst, h.without)
}

func (h *Head) appendWithout(dst []byte, cut []span) []byte {
	if len(cut) == 0 {
		return append(dst, h.raw...)
	}
	from := 0
	if h.encoding == Protobuf {
		size := h.metadata.to - h.metadata.from
		for _, s := range cut {
			size -= s.to - s.from
		}
		dst = append(dst, h.raw[:h.field.from]...)
		dst = binary.AppendUvarint(dst, uint64(size))
		from = h.metadata.from
	}
	for _, s := range cut {
		dst = append(dst, h.raw[from:s.from]...)
		from = s.to
	}
	return append(dst, h.raw[from:]...)
}

// grow appends a span, and makes the last one longer where it reaches to the new.
func grow(spans []span, s span) []span {
	if n := len(spans); n > 0 && spans[n-1].to == s.from {
		spans[n-1].to = s.to
		return spans
	}
	return append(spans, s)
}
