// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"

	"github.com/klauspost/compress/s2"
)

// lessons decide what the dictionary of a kind is made of, and when a new one is due.
//
// Objects of a kind repeat each other far more than they repeat themselves: a Pod of
// 2.4 KB is 370 bytes behind a dictionary of other Pods. A kind with little in it has
// none, since a dictionary of 64 KB and its table would outweigh what it saves. When a
// kind has grown, the next objects are its samples. How well the dictionary serves is
// looked at for as long as the kind is watched, and one that no longer fits is
// replaced: new entries are written with the new one, those that are there stay as
// they are until they change.
type lessons struct {
	sampling bool
	samples  []*entry
	sampled  int // bytes

	count, raw, packed int     // of this window
	usual              float64 // packed bytes for each raw one in the first window; 0: not known
	wait               int     // windows after the first one that are not judged
	patience           int     // of these, how many are to come

	before *form // the one without a dictionary, whose entries are to be rewritten
}

const (
	dictionaryFrom = 64 << 10 // raw bytes of a kind from which a dictionary is worth its memory
	sampleBytes    = 256 << 10
	sampleMost     = 512
	window         = 2048 // objects
	misfit         = 1.5  // so many times the usual size is too much
)

// made is told of each entry and of its body's size.
func (l *lessons) made(a *archive, e *entry, size int) {
	switch {
	case l.sampling:
		l.samples = append(l.samples, e)
		l.sampled += size
		if l.sampled >= sampleBytes || len(l.samples) >= sampleMost {
			l.train(a, e.form)
		}
	case e.form.dict == nil:
		l.sampling = a.raw >= dictionaryFrom
	default:
		l.look(e, size)
	}
}

// look keeps count of how well the dictionary fits.
func (l *lessons) look(e *entry, size int) {
	l.count++
	l.raw += size
	l.packed += len(e.body())
	if l.count < window || l.raw == 0 {
		return
	}
	now := float64(l.packed) / float64(l.raw)
	l.count, l.raw, l.packed = 0, 0, 0
	switch {
	case l.usual == 0:
		l.usual = now
	case l.patience > 0:
		l.patience--
	default:
		l.sampling = now > misfit*l.usual
	}
}

// train makes a dictionary of the samples, and the form that has it.
func (l *lessons) train(a *archive, old *form) {
	dict := learn(l.samples)
	l.sampling, l.samples, l.sampled = false, nil, 0
	// Objects that no dictionary serves would have a new one made again and again:
	// wait longer each time.
	l.wait = 2*l.wait + 4
	l.usual, l.patience = 0, l.wait
	if dict == nil {
		return
	}
	if old.dict == nil {
		l.before = old
	}
	a.forms[old.encoding] = &form{content: old.content, encoding: old.encoding, dict: dict}
}

// learn makes a dictionary of samples, as many as fit, spread over all of them: objects
// that come one after the other are often siblings and say the same.
func learn(samples []*entry) *s2.Dict {
	bodies := make([][]byte, 0, len(samples))
	size := 0
	for _, e := range samples {
		if body, err := e.unpack(nil); err == nil {
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
	// A copy: the last body may be far larger than what of it belongs to the dictionary.
	return s2.MakeDict(bytes.Clone(text[max(0, len(text)-s2.MaxDictSize):]), nil)
}
