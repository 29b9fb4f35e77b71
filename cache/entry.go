// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// entry is an object in the store: its metadata, and the object as the server sent it,
// compressed. docs/cache-format.md describes its parts and their sizes. An entry never changes,
// except for the three fields at its end.
type entry struct {
	family *family
	form   *form
	// text is name, UID, resourceVersion and body in one allocation. The parts are
	// substrings.
	text       string
	generation int64
	created    int64 // seconds since 1970; none: not set
	deleted    int64
	name       uint16 // lengths
	uid        uint16
	version    uint16
	packed     bool // the body is compressed

	mark    uint32       // the relist that saw it last; the writer's
	index   *[]placement // where it stands in indexes that users added; the writer's
	decoded atomic.Pointer[decoded]
}

// none is the time of what has not happened.
const none = math.MinInt64

// family is what the objects that one owner makes have in common. An informer keeps
// each one once.
type family struct {
	namespace  string
	labels     object.Labels
	owners     []metav1.OwnerReference
	finalizers []string
	relations  []string // its values in the index of relations
	digest     digest
	members    int // entries of the store; the writer's
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

func (e *entry) identity() types.UID {
	start := int(e.name) // the sums of two lengths may need more than 16 bits
	return types.UID(e.text[start : start+int(e.uid)])
}

func (e *entry) at() object.Version {
	start := int(e.name) + int(e.uid)
	return object.Version(e.text[start : start+int(e.version)])
}

func (e *entry) body() string { return e.text[int(e.name)+int(e.uid)+int(e.version):] }

func (e *entry) deleting() bool { return e.deleted != none }

// same reports whether the entry is this state of this object.
func (e *entry) same(uid, version []byte) bool {
	return string(e.identity()) == string(uid) && string(e.at()) == string(version)
}

func (e *entry) meta() object.Meta {
	return object.Meta{
		Key:             e.key(),
		UID:             e.identity(),
		Version:         e.at(),
		Generation:      e.generation,
		Labels:          e.family.labels,
		OwnerReferences: e.family.owners,
		Finalizers:      e.family.finalizers,
		Created:         fromSeconds(e.created),
		Deleted:         fromSeconds(e.deleted),
	}
}

func toSeconds(t time.Time) int64 {
	if t.IsZero() {
		return none
	}
	return t.Unix()
}

func fromSeconds(s int64) time.Time {
	if s == none {
		return time.Time{}
	}
	return time.Unix(s, 0)
}
