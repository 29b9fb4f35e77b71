// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/binary"
	"hash/maphash"
	"sync/atomic"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// entry is an object in the store: its metadata, and the object as the server sent it,
// compressed. docs/cache-format.md describes its parts and their sizes. An entry never changes,
// except for the three fields at its end.
type entry struct {
	family *family
	form   *form
	// text is name, UID, resourceVersion, numbers and body in one allocation. The parts are
	// substrings.
	text    string
	name    uint16 // lengths
	uid     uint16
	version uint16
	numbers uint8
	packing packing
	times   times
	uuid    bool // the UID is kept as the content of a UUID

	notes   atomic.Uint32 // see mayhave.go
	index   *[]placement  // where it stands in indexes that users added; the writer's
	decoded atomic.Pointer[decoded]
}

// packing is how a body is kept.
type packing uint8

const (
	plain      packing = iota // as it is, because it does not compress
	compressed                // with S2, and the dictionary of its form if there is one
	patched                   // as a patch of the body of its form's base
	unpacked                  // as it is, until the object has been at rest
)

// whole reports whether the body is as it is.
func (p packing) whole() bool { return p == plain || p == unpacked }

// times is which times of the metadata are set.
type times uint8

const (
	hasCreated times = 1 << iota
	hasDeleted
)

// appendFront appends what stands before the body, and sets the fields that say how long its
// parts are.
func (e *entry) appendFront(dst []byte, h *wire.Head) []byte {
	dst = append(dst, h.Name...)
	uid := len(dst)
	if dst, e.uuid = appendUUID(dst, h.UID); !e.uuid {
		dst = append(dst, h.UID...)
	}
	version := len(dst)
	dst = append(dst, h.ResourceVersion...)
	numbers := len(dst)
	dst = e.appendNumbers(dst, h)
	e.name, e.uid, e.version, e.numbers = uint16(uid), uint16(version-uid), uint16(numbers-version), uint8(len(dst)-numbers)
	return dst
}

// appendNumbers appends the numbers of the metadata: the generation and the times that are set,
// in seconds since 1970, as varints. They are read seldom, and take 24 bytes as fields.
func (e *entry) appendNumbers(dst []byte, h *wire.Head) []byte {
	dst = binary.AppendVarint(dst, h.Generation)
	if !h.Created.IsZero() {
		e.times |= hasCreated
		dst = binary.AppendVarint(dst, h.Created.Unix())
	}
	if !h.Deleted.IsZero() {
		e.times |= hasDeleted
		dst = binary.AppendVarint(dst, h.Deleted.Unix())
	}
	return dst
}

// family is what the objects that one owner makes have in common. An informer keeps
// each one once.
type family struct {
	namespace  string
	labels     object.Labels
	owners     []metav1.OwnerReference
	finalizers *[]string // nil: none, as most objects have
	relations  []string  // its values in the index of relations
	digest     digest
	members    int32 // entries of the store; the writer's
	controlled bool  // one of the owners is the managing controller
}

// finalizerList returns the finalizers, which are read-only.
func (f *family) finalizerList() []string {
	if f.finalizers == nil {
		return nil
	}
	return *f.finalizers
}

// seed makes hashes unpredictable: users choose names, and names with colliding hashes would
// make the store slow.
var seed = maphash.MakeSeed()

func hashOf(namespace, name []byte) uint64 {
	return hashWithin(maphash.Bytes(seed, namespace), name)
}

// hashWithin goes on from the hash of a namespace.
func hashWithin(namespace uint64, name []byte) uint64 {
	// The multiplication keeps a/b and b/a apart. Its constant is the one of
	// Fibonacci hashing, 2^64 divided by the golden ratio.
	return namespace*0x9e3779b97f4a7c15 + maphash.Bytes(seed, name)
}

func hashOfKey(key object.Key) uint64 { return hashOf(bytesOf(key.Namespace), bytesOf(key.Name)) }

// bytesOf is the bytes of a string, to be read only.
func bytesOf(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s)) //nolint:gosec // callers only read
}

func (e *entry) names() (namespace, name []byte) {
	return bytesOf(e.family.namespace), bytesOf(e.nameText())
}

func (e *entry) called(namespace, name []byte) bool {
	return e.nameText() == string(name) && e.family.namespace == string(namespace)
}

func (e *entry) hash() uint64 { return hashOfKey(e.key()) }

func (e *entry) nameText() string { return e.text[:e.name] }

func (e *entry) key() object.Key {
	return object.Key{Namespace: e.family.namespace, Name: e.nameText()}
}

// uidText is the UID as the entry has it.
func (e *entry) uidText() string {
	start := int(e.name) // the sums of two lengths may need more than 16 bits
	return e.text[start : start+int(e.uid)]
}

func (e *entry) identity() types.UID {
	if !e.uuid {
		return types.UID(e.uidText())
	}
	text := formatUUID(e.uidText())
	return types.UID(text[:])
}

// identified reports whether the object has this UID, without making the text of its own.
func (e *entry) identified(uid []byte) bool {
	if !e.uuid {
		return e.uidText() == string(uid)
	}
	text := formatUUID(e.uidText())
	return string(text[:]) == string(uid)
}

// sameObject reports whether another entry is a state of the same object.
func (e *entry) sameObject(other *entry) bool {
	return e.uuid == other.uuid && e.uidText() == other.uidText()
}

func (e *entry) at() object.Version {
	start := int(e.name) + int(e.uid)
	return object.Version(e.text[start : start+int(e.version)])
}

// numbersText is the generation and the times: see appendNumbers.
func (e *entry) numbersText() string {
	start := int(e.name) + int(e.uid) + int(e.version)
	return e.text[start : start+int(e.numbers)]
}

func (e *entry) body() string {
	return e.text[int(e.name)+int(e.uid)+int(e.version)+int(e.numbers):]
}

func (e *entry) deleting() bool { return e.times&hasDeleted != 0 }

// same reports whether the entry is this state of this object.
func (e *entry) same(uid, version []byte) bool {
	return string(e.at()) == string(version) && e.identified(uid)
}

// generation is the first of the numbers.
func (e *entry) generation() int64 {
	n, _ := binary.Varint(bytesOf(e.numbersText()))
	return n
}

func (e *entry) meta() object.Meta {
	m := object.Meta{
		Key:             e.key(),
		UID:             e.identity(),
		Version:         e.at(),
		Labels:          e.family.labels,
		OwnerReferences: e.family.owners,
		Finalizers:      e.family.finalizerList(),
	}
	numbers := bytesOf(e.numbersText())
	next := func() int64 {
		n, size := binary.Varint(numbers)
		numbers = numbers[size:]
		return n
	}
	m.Generation = next()
	if e.times&hasCreated != 0 {
		m.Created = time.Unix(next(), 0)
	}
	if e.times&hasDeleted != 0 {
		m.Deleted = time.Unix(next(), 0)
	}
	return m
}
