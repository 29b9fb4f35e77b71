// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"maps"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// calmServer is a server's model without the server.
func calmServer(changes int) *Server {
	s := &Server{kind: Pods, dice: newDice(rand.New(rand.NewPCG(1, 1)), nil), model: newModel(Pods, 30, rand.New(rand.NewPCG(1, 2)))}
	for range changes {
		if err := s.model.step(); err != nil {
			panic(err)
		}
	}
	return s
}

func sight(uid types.UID, version string) Seen { return Seen{UID: uid, Version: version} }

// A judge that finds nothing proves nothing: each breach must be found in the
// smallest story that has it.
func TestJudgeFindsEachBreachOfAHandler(t *testing.T) {
	key := object.Key{Namespace: "ns", Name: "a"}
	one, two, other := sight("a", "1000"), sight("a", "2000"), sight("b", "3000")
	for name, c := range map[string]struct {
		told func(o *Observer)
		want Breach
	}{
		"a life":                         {func(o *Observer) { o.Added(key, one); o.Updated(key, one, two); o.Deleted(key, two) }, ""},
		"a replacement":                  {func(o *Observer) { o.Added(key, one); o.Replaced(key, one, other); o.Deleted(key, other) }, ""},
		"a reminder":                     {func(o *Observer) { o.Added(key, one); o.Updated(key, one, one); o.Deleted(key, one) }, ""},
		"the end has a newer state":      {func(o *Observer) { o.Added(key, one); o.Deleted(key, two) }, ""},
		"back in one history":            {func(o *Observer) { o.Added(key, two); o.Updated(key, two, one); o.Deleted(key, one) }, WentBack},
		"another told as the same":       {func(o *Observer) { o.Added(key, one); o.Updated(key, one, other); o.Deleted(key, other) }, Confused},
		"another added":                  {func(o *Observer) { o.Added(key, one); o.Added(key, other); o.Deleted(key, other) }, MissedDeletion},
		"the same added again":           {func(o *Observer) { o.Added(key, one); o.Added(key, two); o.Deleted(key, two) }, Disorder},
		"an old state that was not told": {func(o *Observer) { o.Added(key, one); o.Updated(key, two, two); o.Deleted(key, two) }, Disorder},
		"the end of another":             {func(o *Observer) { o.Added(key, one); o.Deleted(key, other) }, Disorder},
		"no end":                         {func(o *Observer) { o.Added(key, one) }, MissedDeletion},
	} {
		t.Run(name, func(t *testing.T) {
			j := NewJudge(calmServer(0))
			o := j.Observer("test")
			c.told(o)
			atRest := o.judgeAtRest(nil)
			if c.want == "" && (len(j.counts) > 0 || !atRest) {
				t.Errorf("found %v, %v", j.counts, j.texts)
			}
			if c.want != "" && j.counts[c.want] == 0 {
				t.Errorf("found %v, not %q", j.counts, c.want)
			}
		})
	}
}

func TestJudgeHoldsSnapshotsAgainstTheStateAtTheirVersion(t *testing.T) {
	s := calmServer(500)
	j := NewJudge(s)
	log := s.model.past[s.model.now].log
	middle := log[len(log)/2]
	then := seen(s.model.past[s.model.now].at(middle.version))
	j.Snapshot(text(middle.version), then)
	if len(j.counts) > 0 {
		t.Errorf("the state at a version was found to be another: %v", j.texts)
	}
	j.Snapshot(text(s.model.version), then)
	if j.counts[Unsound] != 1 {
		t.Error("the state at one version passed for that at another")
	}
	j.Snapshot(text(s.model.version+1), seen(s.model.objects))
	if j.counts[Unsound] != 2 {
		t.Error("a version of a history that never was passed")
	}
}

func TestGoingBackIsRightOnlyToWhatABackupHeld(t *testing.T) {
	s := calmServer(300)
	m := s.model
	m.backup()
	kept := maps.Clone(m.objects)
	for range 20 {
		if err := m.step(); err != nil {
			t.Fatal(err)
		}
	}
	newer := maps.Clone(m.objects)
	changed := func(f func(key object.Key, before, after Seen)) {
		t.Helper()
		found := false
		for key, o := range kept {
			if now := newer[key]; now != nil && now.seen.UID == o.seen.UID && now.seen != o.seen {
				f(key, now.seen, o.seen)
				found = true
			}
		}
		if !found {
			t.Fatal("no object changed and stayed the same; choose another seed")
		}
	}
	changed(func(key object.Key, before, after Seen) {
		if m.goesBack(key, before, after) {
			t.Errorf("%s went from %v to %v before anything was restored", key, before, after)
		}
	})
	m.backups = m.backups[len(m.backups)-1:]
	m.restore()
	changed(func(key object.Key, before, after Seen) {
		if !m.goesBack(key, before, after) {
			t.Errorf("%s may not go from %v to %v although a backup was restored", key, before, after)
		}
		if m.goesBack(key, after, sight(after.UID, "1")) {
			t.Errorf("%s may go back to what no history held", key)
		}
	})
}
