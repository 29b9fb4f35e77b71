// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"hash/maphash"

	"github.com/setpoint-io/setpoint/object"
)

// siblings are the objects of one managing controller, such as the Pods of a ReplicaSet. Their
// bodies are nearly equal, so one of them, the base, is kept whole, and the others as patches of
// it. The base is the last that was written whole. It is one of the store's entries until its
// object changes, and lives as long as there are patches of it.
type siblings struct {
	base     *entry // nil: none has been written
	patches  *form  // of the base; nil: there is no patch of it yet
	families int
}

// kin finds siblings by a hash of their controller's UID. If the hashes of two controllers
// collide, the patches of their objects are longer, and otherwise right: an entry knows its base.
type kin map[uint64]*siblings

func controllerHash(f *family) (hash uint64, ok bool) {
	owner := object.ControllerOf(f.owners)
	if owner == nil {
		return 0, false
	}
	return maphash.String(seed, string(owner.UID)), true
}

// of returns the siblings of a family, which are nil if no controller manages it.
func (k kin) of(f *family) *siblings {
	if hash, ok := controllerHash(f); ok {
		return k[hash]
	}
	return nil
}

// join adds a new family.
func (k kin) join(f *family) {
	hash, ok := controllerHash(f)
	if !ok {
		return
	}
	if k[hash] == nil {
		k[hash] = new(siblings)
	}
	k[hash].families++
}

// leave removes a family that has no members.
func (k kin) leave(f *family) {
	hash, ok := controllerHash(f)
	if !ok {
		return
	}
	if k[hash].families--; k[hash].families == 0 {
		delete(k, hash)
	}
}

// patchWorth is the part of the base's size that a patch may have. A longer one is not written:
// its object is the next base. So an object takes at most this much more than if it were whole,
// even where its patch is the only one of a base whose object has changed.
const patchWorth = 0.75

// patch returns a body as a patch of the base of its siblings, and the form of such patches. The
// form is nil if the body is to be written whole: there is no base yet, it is written with an
// old dictionary or in another encoding, or the body is not alike.
//
// Before there is a dictionary there are no patches: all entries are written again with the first
// one, and a small kind needs neither.
func (a *archive) patch(s *siblings, whole *form, body []byte) ([]byte, *form) {
	if s == nil || s.base == nil || s.base.form != whole || whole.dict == nil || len(body) > patchMost {
		return nil, nil
	}
	if a.patched != s.base {
		a.patched = nil
		base, err := s.base.unpack(&a.base)
		if err != nil || len(base) > patchMost {
			return nil, nil
		}
		if a.patcher == nil {
			a.patcher = new(patcher)
		}
		a.patcher.rebase(base)
		a.patched = s.base
	}
	most := int(patchWorth * float64(len(s.base.body())))
	patch, ok := a.patcher.append(appendChecksum(a.packed[:0], body), body, most)
	a.packed = patch[:0]
	if !ok {
		return nil, nil
	}
	if s.patches == nil {
		s.patches = &form{content: whole.content, encoding: whole.encoding, base: s.base}
	}
	return patch, s.patches
}
