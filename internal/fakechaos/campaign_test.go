// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"testing"
	"testing/synctest"

	"github.com/setpoint-io/setpoint/object"
)

// nameless holds, beside nothing else, an object of a garbled event: one that has neither
// UID nor version, under a name that the server never had.
type nameless struct {
	Candidate
	version string
}

func (n nameless) Version() string        { return n.version }
func (n nameless) Observers() []*Observer { return nil }
func (n nameless) Contents() map[object.Key]Content {
	return map[object.Key]Content{{}: {Digest: func() (uint64, error) { return 0, nil }}}
}

func TestAnObjectThatNeverWasIsABreachAndNoPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := calmServer(0)
		j := NewJudge(s)
		if _, told := s.converge(j, nameless{version: text(s.model.version)}); told != 0 {
			t.Error("the cache was found equal to the truth")
		}
		if j.counts[NotEqual] == 0 {
			t.Errorf("found %v, not %q", j.counts, NotEqual)
		}
	})
}
