// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"

	"github.com/klauspost/compress/s2"
)

// trainer makes the dictionary of a kind, and replaces it when it does not fit any more.
//
// Objects of a kind have much in common: a Pod of 2.4 KB takes 370 bytes with a dictionary made
// of other Pods. A small kind has no dictionary, as the 64 KB and their table would outweigh the
// saving. When a kind has grown, the next objects are the samples. The trainer then measures how
// well the dictionary compresses. When it compresses much worse than at first, the trainer makes
// a new one: new entries use the new dictionary, the others stay as they are until they change.
type trainer struct {
	sampling bool
	samples  []*entry
	sampled  int // bytes

	count, raw, kept int     // of this window
	usual            float64 // packed bytes for each raw one in the first window; 0: not known
	wait             int     // windows after the first one that are not judged
	patience         int     // of these, how many are to come

	before *form // the form without dictionary, whose entries must be rewritten
}

const (
	dictionaryFrom = 64 << 10 // raw bytes of a kind from which a dictionary is worth its memory
	sampleBytes    = 256 << 10
	sampleMost     = 512
	window         = 2048 // objects
	misfit         = 1.5  // so many times the usual size is too much
)

// made takes account of a new entry. size is that of its body.
func (t *trainer) made(a *archive, e *entry, size int) {
	switch {
	case t.sampling:
		t.samples = append(t.samples, e)
		t.sampled += size
		if t.sampled >= sampleBytes || len(t.samples) >= sampleMost {
			t.train(a, a.forms[e.form.encoding])
		}
	case e.form.dict == nil && e.packing != patched:
		t.sampling = a.raw >= dictionaryFrom
	default:
		t.packed(e, size)
	}
}

// packed takes account of an entry that is written with the dictionary. Patches, and what is not packed
// yet, say nothing of it.
func (t *trainer) packed(e *entry, size int) {
	if e.form.dict != nil && e.packing != unpacked {
		t.look(e, size)
	}
}

// look measures how well the dictionary compresses.
func (t *trainer) look(e *entry, size int) {
	t.count++
	t.raw += size
	t.kept += len(e.body())
	if t.count < window || t.raw == 0 {
		return
	}
	now := float64(t.kept) / float64(t.raw)
	t.count, t.raw, t.kept = 0, 0, 0
	switch {
	case t.usual == 0:
		t.usual = now
	case t.patience > 0:
		t.patience--
	default:
		t.sampling = now > misfit*t.usual
	}
}

// train makes a dictionary of the samples, and the form that has it.
func (t *trainer) train(a *archive, old *form) {
	dict := learn(t.samples)
	t.sampling, t.samples, t.sampled = false, nil, 0
	// A kind that no dictionary fits would get a new one again and again: wait longer each
	// time.
	t.wait = 2*t.wait + 4
	t.usual, t.patience = 0, t.wait
	if dict == nil {
		return
	}
	if old.dict == nil {
		t.before = old
	}
	a.forms[old.encoding] = &form{content: old.content, encoding: old.encoding, dict: dict}
}

// learn makes a dictionary of as many samples as fit, spread over all of them: objects that
// arrive one after the other are often nearly equal.
func learn(samples []*entry) *s2.Dict {
	bodies := make([][]byte, 0, len(samples))
	size := 0
	for _, e := range samples {
		if body, err := e.unpack(new([]byte)); err == nil {
			bodies = append(bodies, body)
			size += len(body)
		}
	}
	var text []byte
	step := max(1, size/s2.MaxDictSize)
	for first := 0; first < step && len(text) < s2.MaxDictSize; first++ {
		for i := first; i < len(bodies) && len(text) < s2.MaxDictSize; i += step {
			text = append(text, bodies[i]...)
		}
	}
	// A copy, as the last body may be much larger than its part of the dictionary.
	return s2.MakeDict(bytes.Clone(text[max(0, len(text)-s2.MaxDictSize):]), nil)
}
