// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// Seen is the state of an object up to which everything was told.
type Seen struct {
	UID     types.UID
	Version string // the object's resourceVersion
	// Digest tells a state from another. It is keyed with [Journal.Key].
	Digest [16]byte
}

// Selections returns the names of the selections in the journal, sorted.
func (j *Journal) Selections() []string {
	j.state.RLock()
	defer j.state.RUnlock()
	return slices.Sorted(maps.Keys(j.selections))
}

// Selection returns the resourceVersion of a collection up to which everything was told.
// It is known once the first Version was committed: objects without one are of a first
// list that was not finished. If it is known and the version is empty, the version was
// lost to damage: list, and compare.
func (j *Journal) Selection(name string) (version string, known bool) {
	j.state.RLock()
	defer j.state.RUnlock()
	s := j.selections[name]
	return s.version, s.known
}

// Get returns the state of one object. That it is not there is no error.
func (j *Journal) Get(selection string, key object.Key) (s Seen, known bool, err error) {
	err = j.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketObjects)).Bucket([]byte(selection))
		if b == nil {
			return nil
		}
		k := appendKey(nil, key)
		value := b.Get(k)
		if value == nil {
			return nil
		}
		if s, err = decodeSeen(value, placeOf(ofObject, selection), k); err != nil {
			return fmt.Errorf("object %s of %q: %w", key, selection, ErrRecord)
		}
		known = true
		return nil
	})
	return s, known, err
}

// Objects returns the objects of a selection, in the order of their keys, and a function
// that says afterwards whether they were all. After an error they are not, and what is
// missing must not be taken for new.
//
// The file is read a piece at a time, and no transaction is open while the caller has an
// object: it may commit. What is committed meanwhile for keys to come is seen or not.
func (j *Journal) Objects(selection string) (objects iter.Seq2[object.Key, Seen], failed func() error) {
	var err error
	seq := func(yield func(object.Key, Seen) bool) {
		p, in := piece{selection: selection}, placeOf(ofObject, selection)
		for {
			if err = j.view(p.read); err != nil {
				return
			}
			for _, n := range p.lengths {
				key, value := p.next(n)
				s, decodeErr := decodeSeen(value, in, key)
				if decodeErr != nil {
					err = fmt.Errorf("the journal %s: object %q of %q: %w", j.path, key, selection, ErrRecord)
					return
				}
				if !yield(splitKey(string(key)), s) {
					return
				}
			}
			if p.last {
				return
			}
		}
	}
	return seq, func() error { return err }
}

// A piece of the objects of a selection is so many records or bytes.
const (
	pieceRecords = 512
	pieceBytes   = 128 << 10
)

type piece struct {
	selection string
	data      []byte
	at        int
	lengths   [][2]int // of keys and values in data
	after     []byte   // the key before the next piece
	last      bool
}

// read copies the next piece out of the file.
func (p *piece) read(tx *bbolt.Tx) error {
	p.data, p.lengths, p.at, p.last = p.data[:0], p.lengths[:0], 0, true
	b := tx.Bucket([]byte(bucketObjects)).Bucket([]byte(p.selection))
	if b == nil {
		return nil
	}
	c := b.Cursor()
	var k, v []byte
	if p.after == nil {
		k, v = c.First()
	} else if k, v = c.Seek(p.after); bytes.Equal(k, p.after) {
		k, v = c.Next()
	}
	for ; k != nil; k, v = c.Next() {
		if len(p.lengths) == pieceRecords || len(p.data) > pieceBytes {
			p.last = false
			break
		}
		p.data = append(append(p.data, k...), v...)
		p.lengths = append(p.lengths, [2]int{len(k), len(v)})
		p.after = append(p.after[:0], k...)
	}
	return nil
}

func (p *piece) next(n [2]int) (key, value []byte) {
	key = p.data[p.at : p.at+n[0]]
	p.at += n[0] + n[1]
	return key, p.data[p.at-n[1] : p.at]
}
