// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/runs"
)

func TestAnswersAgreeWhileOnlyTimePasses(t *testing.T) {
	hot := func(times int, last time.Duration) explain.Facts {
		return explain.Facts{Runs: []explain.Traced{run("website-controller", 30*time.Second, func(r *runs.Run) {
			r.Runs, r.Last = times, now.Add(last)
		})}}
	}
	ready := func(n string) explain.Facts {
		f := explain.Facts{Present: waits(runs.Object{})}
		f.Present[0].Reasons[0].Params[0].Value = n
		return f
	}
	for name, c := range map[string]struct {
		first, second explain.Facts
		agree         bool
	}{
		"a wait":                      {ready("1"), ready("1"), true},
		"a wait that changes":         {ready("1"), ready("2"), false},
		"a hot loop that runs on":     {hot(300, -time.Second), hot(400, time.Minute-time.Second), true},
		"a wait that becomes a fight": {ready("1"), explain.Facts{Present: waits(runs.Object{}), Runs: fight(4)}, false},
		"a fight that goes on":        {explain.Facts{Runs: fight(4)}, explain.Facts{Runs: fight(6)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tell := func(f explain.Facts, passed time.Duration) explain.Answer {
				f.State, f.Object, f.Recorded, f.Now = state(), web, true, now.Add(passed)
				return explain.Tell(f)
			}
			first, second := tell(c.first, 0), tell(c.second, time.Minute)
			if first.Sentence == second.Sentence {
				t.Fatalf("the sentences are the same: %s", first.Sentence)
			}
			if first.Agrees(&second) != c.agree {
				t.Errorf("%q and %q: agree is %v, want %v", first.Sentence, second.Sentence, !c.agree, c.agree)
			}
		})
	}
}
