// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
	kjson "sigs.k8s.io/json"

	"github.com/setpoint-io/setpoint/watch/journal"
)

// states encodes the states of the objects of a selection for its journal, and decodes them. Objects
// of a kind have much in common, so they are compressed with a dictionary: the first states of the
// kind. The dictionary is in the journal before any state that needs it. It is for one goroutine.
type states struct {
	journal   *journal.Journal
	selection string
	rules     [4]byte // of hidden values

	dictionary *s2.Dict
	samples    []byte
}

// An encoded state is a letter for the form, the digest of the rules of hidden values, and a block of s2
// (https://github.com/klauspost/compress/tree/master/s2) with the state as JSON.
const (
	plainState     = 'p' // without a dictionary
	dictionaryForm = 'd'
	stateHead      = 1 + 4

	// dictionaryFrom is from how many bytes of states on a dictionary is made of them: as much as
	// s2 uses of one. Smaller kinds take little room without.
	dictionaryFrom = s2.MaxDictSize
	// mostState is how large a state may be as JSON. A server takes 1.5 MiB.
	mostState = 8 << 20
)

// openStates returns what encodes the states of a selection, nil if its journal keeps none.
func openStates(j *journal.Journal, selection string, rules [4]byte) (*states, error) {
	if j == nil || !j.KeepsStates() {
		return nil, nil
	}
	s := &states{journal: j, selection: selection, rules: rules}
	text, err := j.Dictionary(selection)
	if err != nil {
		return nil, err
	}
	if len(text) > 0 {
		s.dictionary = s2.NewDict(text)
	}
	return s, nil
}

// encode returns a state for the journal, "" for one that is not kept because it is too large.
func (s *states) encode(state tree) (string, error) {
	text, err := json.Marshal(state)
	if err != nil || len(text) > mostState {
		return "", err
	}
	form := byte(plainState)
	var block []byte
	if s.dictionary != nil {
		form, block = dictionaryForm, s.dictionary.Encode(nil, text)
	} else {
		block = s2.Encode(nil, text)
		if err := s.learn(text); err != nil {
			return "", err
		}
	}
	if stateHead+len(block) > journal.MaxState {
		return "", nil
	}
	encoded := append(make([]byte, 0, stateHead+len(block)), form)
	encoded = append(encoded, s.rules[:]...)
	return string(append(encoded, block...)), nil
}

// learn makes the dictionary when there are enough states for it.
func (s *states) learn(text []byte) error {
	s.samples = append(s.samples, text...)
	if len(s.samples) < dictionaryFrom {
		return nil
	}
	made := s2.MakeDict(s.samples[len(s.samples)-dictionaryFrom:], nil)
	s.samples = nil
	if made == nil {
		return nil
	}
	var b journal.Batch
	b.Dictionary(s.selection, made.Bytes())
	if err := s.journal.Commit(&b); err != nil {
		return fmt.Errorf("keeping the dictionary of %s: %w", s.selection, err)
	}
	s.dictionary = made
	return nil
}

var errState = errors.New("it is no state that this program has written")

// decode returns a state from the journal. It is nil if none was kept, or under other rules of hidden
// values: such a state may show what is to be hidden now.
func (s *states) decode(encoded string) (tree, error) {
	if len(encoded) < stateHead {
		return nil, nil
	}
	form, rules, block := encoded[0], encoded[1:stateHead], []byte(encoded[stateHead:])
	if rules != string(s.rules[:]) {
		return nil, nil
	}
	n, err := s2.DecodedLen(block)
	if err != nil || n > mostState {
		return nil, errState
	}
	var text []byte
	switch {
	case form == plainState:
		text, err = s2.Decode(nil, block)
	case form == dictionaryForm && s.dictionary != nil:
		text, err = s.dictionary.Decode(nil, block)
	default:
		return nil, errState
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errState, err)
	}
	var state tree
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &state); err != nil {
		return nil, fmt.Errorf("%w: %w", errState, err)
	}
	return state, nil
}
