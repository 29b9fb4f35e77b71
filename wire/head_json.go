// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Where Head.family has what, in JSON. What an object does not have is empty.
const (
	familyLabels = iota
	familyOwners
	familyFinalizers
	families
)

// once refuses members that are there twice. Decoders take the last, or parts of
// both.
type once uint32

func (o *once) see(m *walker, bit int) {
	if *o&(1<<bit) != 0 && m.err == nil {
		m.err = fmt.Errorf("%w: %q is there twice", ErrMalformed, m.name)
	}
	*o |= 1 << bit
}

func (h *Head) readJSON() error {
	var seen once
	top := walk(&h.scan, h.raw, 0)
	for top.next() {
		if string(top.name) != "metadata" {
			top.skip()
			continue
		}
		seen.see(&top, 0)
		if top.peek() == 'n' {
			top.null()
			continue
		}
		metadata := walk(&h.scan, h.raw, top.at)
		h.readMembers(&metadata)
		top.follow(&metadata)
	}
	top.end()
	return top.err
}

// follow continues behind a value that inner has read.
func (m *walker) follow(inner *walker) {
	m.at = inner.at
	if m.err == nil {
		m.err = inner.err
	}
}

func (h *Head) readMembers(m *walker) {
	h.family = append(h.family, make([]span, families)...)
	var seen once
	first := false // the member to cut is the first one
	for m.next() {
		if first {
			// Its comma is the one behind it.
			h.cut[0].to, first = m.from, false
		}
		switch string(m.name) {
		case "name":
			seen.see(m, 0)
			h.Name = m.textOrNull()
		case "namespace":
			seen.see(m, 1)
			h.Namespace = m.textOrNull()
		case "uid":
			seen.see(m, 2)
			h.UID = m.textOrNull()
		case "resourceVersion":
			seen.see(m, 3)
			h.ResourceVersion = m.textOrNull()
		case "generation":
			seen.see(m, 4)
			h.Generation = m.integer()
		case "creationTimestamp":
			seen.see(m, 5)
			h.Created = m.time()
		case "deletionTimestamp":
			seen.see(m, 6)
			h.Deleted = m.time()
		case "labels":
			seen.see(m, 7)
			from := m.at
			h.readLabels(m)
			h.family[familyLabels] = span{from, m.at}
		case "annotations":
			seen.see(m, 8)
			h.notes = m.pass()
		case "ownerReferences":
			seen.see(m, 9)
			h.family[familyOwners] = m.pass()
		case "finalizers":
			seen.see(m, 10)
			h.family[familyFinalizers] = m.pass()
		case "managedFields":
			seen.see(m, 11)
			from := m.prev
			if from == 0 {
				from, first = m.from, true
			}
			m.skip()
			h.cut = append(h.cut, span{from, m.at})
		default:
			m.skip()
		}
	}
}

// pass passes over the value at hand and returns where it is.
func (m *walker) pass() span {
	from := m.at
	m.skip()
	return span{from, m.at}
}

// integer reads a whole number that fits into 64 bits, or null, which is 0.
func (m *walker) integer() int64 {
	if m.peek() == 'n' {
		m.null()
		return 0
	}
	n, err := strconv.ParseInt(string(m.skip()), 10, 64)
	if err != nil {
		m.fail("a whole number")
	}
	return n
}

// time reads a metav1.Time: RFC 3339, or null, which is the zero time.
func (m *walker) time() time.Time {
	if m.peek() == 'n' {
		m.null()
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, string(m.textOrNull()))
	if err != nil {
		m.fail("a time")
		return time.Time{}
	}
	return t.Local()
}

func (h *Head) readLabels(m *walker) {
	if m.peek() == 'n' {
		m.null()
		return
	}
	labels := walk(m.scan, m.data, m.at)
	for labels.next() {
		h.addLabel(labels.name, labels.textOrNull())
	}
	m.follow(&labels)
}

// value returns a member of the family; nothing if the object does not have it.
func (h *Head) value(which int) []byte {
	if which >= len(h.family) {
		return nil
	}
	return h.bytes(h.family[which])
}

func (h *Head) ownersJSON() ([]metav1.OwnerReference, error) {
	return elements(h.value(familyOwners), (*walker).owner)
}

// owner reads a metav1.OwnerReference.
func (m *walker) owner() metav1.OwnerReference {
	var owner metav1.OwnerReference
	var seen once
	in := walk(m.scan, m.data, m.at)
	for in.next() {
		switch string(in.name) {
		case "apiVersion":
			seen.see(&in, 0)
			owner.APIVersion = string(in.textOrNull())
		case "kind":
			seen.see(&in, 1)
			owner.Kind = string(in.textOrNull())
		case "name":
			seen.see(&in, 2)
			owner.Name = string(in.textOrNull())
		case "uid":
			seen.see(&in, 3)
			owner.UID = types.UID(in.textOrNull())
		case "controller":
			seen.see(&in, 4)
			owner.Controller = in.boolean()
		case "blockOwnerDeletion":
			seen.see(&in, 5)
			owner.BlockOwnerDeletion = in.boolean()
		default:
			in.skip()
		}
	}
	m.follow(&in)
	return owner
}

// boolean reads true, false or null.
func (m *walker) boolean() *bool {
	switch string(m.skip()) {
	case "true":
		return new(true)
	case "false":
		return new(false)
	case "null":
	default:
		m.fail("true or false")
	}
	return nil
}

func (h *Head) finalizersJSON() ([]string, error) {
	return elements(h.value(familyFinalizers), func(m *walker) string {
		if m.peek() != '"' {
			m.fail("a text") // of null decoders make different things
			return ""
		}
		return string(m.textOrNull())
	})
}

func (h *Head) annotationsJSON() (map[string]string, error) {
	raw := h.bytes(h.notes)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	annotations := map[string]string{}
	m := walk(&h.scan, raw, 0)
	for m.next() {
		annotations[string(m.name)] = string(m.textOrNull())
	}
	return annotations, m.err
}
