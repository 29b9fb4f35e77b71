// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// Seen is the state of an object up to which everything was told.
type Seen struct {
	UID     types.UID
	Version string // the object's resourceVersion
	// Digest tells a state from another. It is keyed with [Journal.Key].
	Digest [16]byte
	// Trouble is what was known to be wrong with the object, in the encoding of package trouble;
	// empty for nothing. The journal keeps the bytes as they are.
	Trouble string
	// State is the state itself, in the encoding of the caller; empty where it is not kept. A
	// journal without [Options.States] drops it. [Journal.Objects] leaves it out.
	State string
}

// seen returns the object of a change, and its state.
func (c *change) seen() (object.Key, Seen) {
	s := Seen{UID: types.UID(c.uid), Version: string(c.version), Trouble: string(c.data), State: string(c.state)}
	copy(s.Digest[:], c.digest)
	return object.Key{Namespace: string(c.namespace), Name: string(c.object)}, s
}

// Selections returns the names of the selections in the journal, sorted.
func (j *Journal) Selections() []string {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return sortedNames(j.state.selections)
}

// Selection returns the resourceVersion of a collection up to which everything was told.
// It is known once the first Version was committed: objects without one are of a first
// list that was not finished. If it is known and the version is empty, the version was
// lost to damage: list, and compare.
func (j *Journal) Selection(name string) (version string, known bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if s := j.state.selections[name]; s != nil {
		return s.version, s.known
	}
	return "", false
}

// Get returns the state of one object. An object that is not there is no error.
func (j *Journal) Get(selection string, key object.Key) (s Seen, known bool, err error) {
	err = j.read(func() error {
		sel := j.state.selections[selection]
		if sel == nil {
			return nil
		}
		at, there := sel.objects[j.state.id([]byte(key.Namespace), []byte(key.Name))]
		if !there {
			return nil
		}
		var c change
		message, err := at.read(j.file)
		if err == nil {
			err = c.decode(message)
		}
		if err != nil {
			return j.explain("reading it", err)
		}
		_, s = c.seen()
		known = true
		return nil
	})
	return s, known, err
}

// Dictionary returns the dictionary of the states of the objects of a selection, nil if there is
// none.
func (j *Journal) Dictionary(selection string) (dictionary []byte, err error) {
	err = j.read(func() error {
		sel := j.state.selections[selection]
		if sel == nil || sel.dictionary.n == 0 {
			return nil
		}
		var c change
		message, err := sel.dictionary.read(j.file)
		if err == nil {
			err = c.decode(message)
		}
		if err != nil {
			return j.explain("reading it", err)
		}
		dictionary = c.data
		return nil
	})
	return dictionary, err
}

// KeepsStates reports whether the journal keeps the states of objects.
func (j *Journal) KeepsStates() bool { return j.options.States }

// Objects returns the objects of a selection, without their states, in the order of their keys, and a function
// that says afterwards whether they were all. After an error they are not, and what is
// missing must not be taken for new. They are those of the moment when the loop begins: the
// caller may commit within it.
func (j *Journal) Objects(selection string) (objects iter.Seq2[object.Key, Seen], failed func() error) {
	var err error
	seq := func(yield func(object.Key, Seen) bool) {
		var all []known
		all, err = j.objects(selection)
		for _, o := range all {
			if !yield(o.key, o.seen) {
				return
			}
		}
	}
	return seq, func() error {
		if err != nil {
			return j.explain("reading it", err)
		}
		return nil
	}
}

type known struct {
	key  object.Key
	seen Seen
}

func (j *Journal) objects(selection string) (all []known, err error) {
	err = j.read(func() error {
		sel := j.state.selections[selection]
		if sel == nil {
			return nil
		}
		all = make([]known, 0, len(sel.objects))
		var c change
		for message, err := range readAll(j.file, slices.SortedFunc(maps.Values(sel.objects), section.compare)) {
			if err == nil {
				err = c.decode(message)
			}
			if err != nil {
				return err
			}
			c.state = nil // a hundred thousand states would be in memory at once
			key, seen := c.seen()
			all = append(all, known{key, seen})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b known) int {
		if c := strings.Compare(a.key.Namespace, b.key.Namespace); c != 0 {
			return c
		}
		return strings.Compare(a.key.Name, b.key.Name)
	})
	return all, err
}
