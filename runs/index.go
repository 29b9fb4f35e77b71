// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"hash/maphash"
	"math/bits"

	"github.com/setpoint-io/setpoint/object"
)

// index makes the terms under which entries are found, and tells which runs ended alike. Entries with one hash are
// compared by what they have where it matters, apart from keys: two keys of one controller with the same 64 bits are
// taken for one.
type index struct{ seed maphash.Seed }

func newIndex() index { return index{maphash.MakeSeed()} }

// mix combines two hashes.
func mix(a, b uint64) uint64 {
	const odd = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	high, low := bits.Mul64(a^bits.RotateLeft64(b, 32)^odd, odd)
	return high ^ low ^ b
}

func (i *index) text(h uint64, s string) uint64 { return mix(h, maphash.String(i.seed, s)) }

func (i *index) key(h uint64, key object.Key) uint64 {
	return i.text(i.text(h, key.Namespace), key.Name)
}

func comparable64[K comparable](i *index, h uint64, key K) uint64 {
	return mix(h, maphash.Comparable(i.seed, key))
}

// term shortens a hash to a term of the rings.
func term(h uint64) uint32 { return uint32(h ^ h>>32) }

// What a term is about, so that objects and versions do not share terms.
const (
	ofObject  = 1
	ofVersion = 2
)

// object returns the term of an object, whatever its UID.
func (i *index) object(group, kind string, key object.Key) uint32 {
	return term(i.key(i.text(i.text(ofObject, group), kind), key))
}

// version returns the term of a version of an object of a kind.
func (i *index) version(group, kind string, version uint64) uint32 {
	return term(mix(i.text(i.text(ofVersion, group), kind), version))
}

// like returns what is equal for two runs of one key without writes that ended alike: those with the same error; those with
// the same reasons; and those that say nothing, if the same sources saw the same changes of the same objects. Most causes
// are changes of the object that the key stands for, of which only the UID is not known yet.
func (i *index) like(l *Loop, key object.Key, run *Ended) uint64 {
	h := uint64(1 + indexOf(run.Outcome))
	switch {
	case run.Outcome.fails():
		h = i.reasons(i.text(h, run.Error), run.Reasons)
	case len(run.Reasons) > 0:
		h = i.reasons(h, run.Reasons)
	default:
		for c := range run.Causes.All() {
			h = i.text(i.text(h, c.Source), c.Verb)
			if !l.owns(key, &c.Ref) {
				h = i.text(i.key(h, c.Ref.Key), c.Ref.Kind)
			}
			h = i.text(h, string(c.Ref.UID))
		}
	}
	return max(h, 1)
}

func (i *index) reasons(h uint64, all []Reason) uint64 {
	for k := range all {
		h = i.text(i.text(h, all[k].Code), all[k].Text)
		for _, p := range all[k].Params {
			h = i.text(h, p.Value)
		}
		h = i.text(i.key(h, all[k].About.Ref().Key), string(all[k].About.UID))
	}
	return h
}

// writeTerms adds the terms of writes: each version, and each object once if its writes follow each other. The object
// of the key needs no term of its own: the key leads to it.
func (e *encoder) writeTerms(i *index, of *entry, all []Write, most int) {
	// A write takes some 100 bytes with its postings: the terms of those that have no room find an entry without them.
	all = all[:min(len(all), most/64)]
	var before uint32
	if of.loop.kind != "" && len(all) > 0 {
		before = i.object(of.loop.group, of.loop.kind, of.key)
	}
	for k := range all {
		w := &all[k]
		if t := i.object(w.Object.Group, w.Object.Kind, w.Object.Ref().Key); t != before {
			e.terms = append(e.terms, t)
			before = t
		}
		if v := number(w.Version); v != 0 {
			e.terms = append(e.terms, i.version(w.Object.Group, w.Object.Kind, v))
		}
	}
}

// reasonTerms adds the terms of the objects that reasons are about.
func (e *encoder) reasonTerms(i *index, all []Reason) {
	for k := range all[:min(len(all), mostReasons)] {
		if about := &all[k].About; *about != (Object{}) {
			e.terms = append(e.terms, i.object(about.Group, about.Kind, about.Ref().Key))
		}
	}
}
