// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"iter"

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

// Get returns the state of one object. That it is not there is no error.
func (j *Journal) Get(selection string, key object.Key) (s Seen, known bool, err error) {
	err = j.read(func() error {
		if sel := j.state.selections[selection]; sel != nil {
			s, known = sel.objects[key]
		}
		return nil
	})
	return s, known, err
}

// Objects returns the objects of a selection, in the order of their keys, and a function
// that says afterwards whether they were all. After an error they are not, and what is
// missing must not be taken for new. They are those of the moment when the loop begins: the
// caller may commit within it.
func (j *Journal) Objects(selection string) (objects iter.Seq2[object.Key, Seen], failed func() error) {
	var err error
	seq := func(yield func(object.Key, Seen) bool) {
		var all []known
		err = j.read(func() error {
			all = j.state.objects(selection)
			return nil
		})
		for _, o := range all {
			if !yield(o.key, o.seen) {
				return
			}
		}
	}
	return seq, func() error {
		if err != nil {
			return fmt.Errorf("the journal %s: %w", j.path, err)
		}
		return nil
	}
}

// Drop forgets a selection that is no longer watched, with all of its objects.
func (j *Journal) Drop(selection string) error {
	var b Batch
	b.Drop(selection)
	_, err := j.Commit(&b)
	return err
}
