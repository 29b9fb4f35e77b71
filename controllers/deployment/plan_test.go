// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The API server accepts this percentage: it is longer than the integers that its validation reads.
func TestALimitThatCannotBeReadIsNamed(t *testing.T) {
	d := deployment(4)
	surge := intstr.FromString("99999999999999999999%")
	d.Spec.Strategy.RollingUpdate.MaxSurge = &surge
	_, err := decide(view{deployment: d, now: began})
	if err == nil || !strings.Contains(err.Error(), "spec.strategy.rollingUpdate.maxSurge") {
		t.Errorf("the error is %v", err)
	}
}

func TestRollingUpdateSteps(t *testing.T) {
	for _, c := range []struct {
		name string
		d    *appsv1.Deployment
		sets func(*appsv1.Deployment) []*appsv1.ReplicaSet
		want map[string]int32
	}{
		{"the first rollout takes all at once", deployment(20),
			func(*appsv1.Deployment) []*appsv1.ReplicaSet { return nil },
			map[string]int32{"new": 20}},
		{"surge up and unavailable down in one step", rollingTo(deployment(20), 2),
			func(d *appsv1.Deployment) []*appsv1.ReplicaSet { return []*appsv1.ReplicaSet{set(d, 1, 20)} },
			map[string]int32{"new": 5, "set-1": 15}},
		{"room is taken, unavailable Pods hold back the old", rollingTo(deployment(20), 2),
			func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
				return []*appsv1.ReplicaSet{set(d, 1, 15), set(d, 2, 5, working(0))}
			},
			map[string]int32{"set-1": 15, "set-2": 10}},
		{"Pods that became available set old ones free", rollingTo(deployment(20), 2),
			func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
				return []*appsv1.ReplicaSet{set(d, 1, 15), set(d, 2, 10, working(4))}
			},
			map[string]int32{"set-1": 11, "set-2": 10}},
		{"unhealthy old Pods go first, also of a younger set", rollingTo(deployment(10), 3),
			func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
				return []*appsv1.ReplicaSet{set(d, 1, 8), set(d, 2, 5, working(0)), set(d, 3, 0)}
			},
			map[string]int32{"set-1": 8, "set-2": 0, "set-3": 0}},
		{"of healthy ones the oldest go first", rollingTo(deployment(10), 3),
			func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
				return []*appsv1.ReplicaSet{set(d, 1, 3), set(d, 2, 7), set(d, 3, 3)}
			},
			map[string]int32{"set-1": 0, "set-2": 5, "set-3": 3}},
		{"what crashes holds the rollout", rollingTo(deployment(10), 2),
			func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
				return []*appsv1.ReplicaSet{set(d, 1, 8), set(d, 2, 5, working(0))}
			},
			map[string]int32{"set-1": 8, "set-2": 5}},
		{"no more than is left after an old Pod failed too", rollingTo(deployment(10), 2),
			func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
				return []*appsv1.ReplicaSet{set(d, 1, 8, working(7)), set(d, 2, 5, working(0))}
			},
			map[string]int32{"set-1": 8, "set-2": 5}},
		{"ready but not yet available Pods are not taken for broken ones", rollingTo(deployment(10), 2),
			func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
				return []*appsv1.ReplicaSet{set(d, 1, 10, func(s *appsv1.ReplicaSet) { s.Status.AvailableReplicas = 8 }), set(d, 2, 3, working(0))}
			},
			map[string]int32{"set-1": 10, "set-2": 3}},
		{"a current set that somebody made too large", rollingTo(deployment(4), 2),
			func(d *appsv1.Deployment) []*appsv1.ReplicaSet { return []*appsv1.ReplicaSet{set(d, 2, 9)} },
			map[string]int32{"set-2": 4}},
		{"nothing to do", rollingTo(deployment(4), 2),
			func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
				return []*appsv1.ReplicaSet{set(d, 1, 0), set(d, 2, 4)}
			},
			map[string]int32{"set-1": 0, "set-2": 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sets := c.sets(c.d)
			wantSizes(t, sizesOf(decided(t, c.d, sets...), sets...), c.want)
		})
	}
}

func TestNoStepBeforeEverySetIsSteady(t *testing.T) {
	for name, disturb := range map[string]func(*appsv1.ReplicaSet){
		"a size that its controller has not seen": func(s *appsv1.ReplicaSet) { s.Generation = 2 },
		"Pods that are not deleted yet":           func(s *appsv1.ReplicaSet) { s.Status.Replicas++ },
	} {
		t.Run(name, func(t *testing.T) {
			d := rollingTo(deployment(20), 2)
			old := set(d, 1, 15, disturb)
			if p := decided(t, d, old, set(d, 2, 5)); len(p.changes) != 0 {
				t.Errorf("changes = %+v, want none", p.changes)
			}
			p := decided(t, d, old)
			wantSizes(t, sizesOf(p, old), map[string]int32{"new": 0, "set-1": 15})
		})
	}
}

func TestScaledSetsCarryTheSizeOfTheDeployment(t *testing.T) {
	d := rollingTo(deployment(20), 2)
	p := decided(t, d, set(d, 1, 20, annotate(maxAnnotation, "x")))
	for what, annotations := range map[string]map[string]string{"new": p.create.Annotations, "old": p.changes[0].annotations} {
		if annotations[maxAnnotation] != "25" {
			t.Errorf("annotations of the %s set = %v", what, annotations)
		}
	}
	if got := scaled(p.create, 0, 5).Note; got != "Scaled up replica set "+p.create.Name+" from 0 to 5" {
		t.Errorf("event = %q", got)
	}
	if got := scaled(p.changes[0].set, 20, 15).Note; got != "Scaled down replica set "+p.changes[0].set.Name+" from 20 to 15" {
		t.Errorf("event = %q", got)
	}
}

func TestRecreateWaitsUntilOldPodsAreGone(t *testing.T) {
	one := int32(1)
	d := rollingTo(recreating(3), 2)
	active := set(d, 1, 3)
	p := decided(t, d, active)
	wantSizes(t, sizesOf(p, active), map[string]int32{"set-1": 0})

	running := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	failed := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	for _, c := range []struct {
		name    string
		disturb func(*appsv1.ReplicaSet)
		pods    []*corev1.Pod
		waits   bool
	}{
		{"nothing is left", func(*appsv1.ReplicaSet) {}, nil, false},
		{"the set has not been looked at since", func(s *appsv1.ReplicaSet) { s.Generation = 2 }, nil, true},
		{"the set has a Pod", func(s *appsv1.ReplicaSet) { s.Status.Replicas = 1 }, nil, true},
		{"a Pod is terminating", func(s *appsv1.ReplicaSet) { s.Status.TerminatingReplicas = &one }, nil, true},
		{"a Pod is still seen", func(*appsv1.ReplicaSet) {}, []*corev1.Pod{failed, running}, true},
		{"a Pod has ended for good", func(*appsv1.ReplicaSet) {}, []*corev1.Pod{failed}, false},
		{"terminating Pods are not counted", func(s *appsv1.ReplicaSet) { s.Status.TerminatingReplicas = nil }, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			old := set(d, 1, 0, c.disturb)
			p, err := decide(view{deployment: d, sets: []*appsv1.ReplicaSet{old}, pods: map[types.UID][]*corev1.Pod{old.UID: c.pods}, now: began})
			if err != nil {
				t.Fatal(err)
			}
			if waits := p.create == nil; waits != c.waits {
				t.Errorf("waits: %v, want %v", waits, c.waits)
			}
			if p.create != nil && size(p.create) != 3 {
				t.Errorf("the new set has %d replicas, want 3", size(p.create))
			}
		})
	}
}

func TestRecreateGrowsASetThatIsThere(t *testing.T) {
	d := rollingTo(recreating(3), 2)
	sets := []*appsv1.ReplicaSet{set(d, 1, 0), set(d, 2, 0)}
	wantSizes(t, sizesOf(decided(t, d, sets...), sets...), map[string]int32{"set-1": 0, "set-2": 3})
}

func TestUnknownStrategyIsAnError(t *testing.T) {
	d := deployment(1)
	d.Spec.Strategy.Type = "Sideways"
	if _, err := decide(view{deployment: d, now: began}); err == nil {
		t.Error("no error")
	}
}

func TestScalingKeepsProportions(t *testing.T) {
	resized := func(from int32) func(*appsv1.ReplicaSet) {
		return func(s *appsv1.ReplicaSet) { maps.Copy(s.Annotations, sized(s, limits(deployment(from)))) }
	}
	for _, c := range []struct {
		name     string
		from, to int32
		old, now int32
		want     map[string]int32
	}{
		{"one set takes all", 10, 20, 0, 10, map[string]int32{"set-1": 0, "set-2": 20}},
		{"an old set alone takes all", 10, 20, 10, 0, map[string]int32{"set-1": 20, "set-2": 0}},
		{"no active set: the current one", 0, 5, 0, 0, map[string]int32{"set-1": 0, "set-2": 5}},
		{"up, in proportion", 10, 20, 8, 5, map[string]int32{"set-1": 15, "set-2": 10}},
		{"down, in proportion", 20, 10, 15, 10, map[string]int32{"set-1": 8, "set-2": 5}},
		{"down to nothing", 10, 0, 8, 5, map[string]int32{"set-1": 0, "set-2": 0}},
		{"what is left over goes to the largest", 10, 11, 8, 5, map[string]int32{"set-1": 9, "set-2": 5}},
		{"of two of a size the newer grows", 10, 11, 6, 6, map[string]int32{"set-1": 6, "set-2": 8}},
		{"of two of a size the older shrinks", 10, 5, 6, 6, map[string]int32{"set-1": 3, "set-2": 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := rollingTo(deployment(c.to), 2)
			sets := []*appsv1.ReplicaSet{set(d, 1, c.old, resized(c.from)), set(d, 2, c.now, resized(c.from), working(min(c.now, 1)))}
			if c.old+c.now == 0 {
				d.Spec.Paused = true // otherwise it is the first step of a rollout
			}
			p := decided(t, d, sets...)
			wantSizes(t, sizesOf(p, sets...), c.want)
			for _, change := range p.changes {
				if got, known := annotated(change.set, desiredAnnotation); known && got == c.to {
					continue
				}
				if change.annotations[desiredAnnotation] == "" {
					t.Errorf("set %s is not told the new size", change.set.UID)
				}
			}
		})
	}
}

func TestScalingUpWaitsForPodsThatAreToGo(t *testing.T) {
	d := rollingTo(deployment(20), 2)
	for _, sets := range [][]*appsv1.ReplicaSet{
		{set(d, 1, 0, func(s *appsv1.ReplicaSet) { s.Status.Replicas = 8 }), set(d, 2, 10, annotate(desiredAnnotation, "10"))},
		{set(d, 1, 5, func(s *appsv1.ReplicaSet) { s.Status.Replicas = 8 }), set(d, 2, 5, annotate(desiredAnnotation, "10"))},
	} {
		if p := decided(t, d, sets...); len(p.changes) > 0 {
			t.Errorf("changes = %+v, want none before the old Pods are gone", p.changes)
		}
	}
}

func TestSaturatedSetEndsTheOthers(t *testing.T) {
	d := rollingTo(deployment(5), 2)
	sets := []*appsv1.ReplicaSet{set(d, 1, 3, annotate(desiredAnnotation, "3")), set(d, 2, 5)}
	wantSizes(t, sizesOf(decided(t, d, sets...), sets...), map[string]int32{"set-1": 0, "set-2": 5})
}

func TestSizeWithAWrongAnnotationIsMended(t *testing.T) {
	d := deployment(5)
	p := decided(t, d, set(d, 1, 5, annotate(desiredAnnotation, "3")))
	if len(p.changes) != 1 || p.changes[0].annotations[desiredAnnotation] != "5" || p.changes[0].replicas != 5 {
		t.Errorf("changes = %+v, want the annotation mended", p.changes)
	}
}

func TestResizeWithRecreateAndTwoActiveSetsGoesOnWithTheRollout(t *testing.T) {
	d := rollingTo(recreating(5), 2)
	sets := []*appsv1.ReplicaSet{set(d, 1, 3, annotate(desiredAnnotation, "3")), set(d, 2, 3, annotate(desiredAnnotation, "3"))}
	wantSizes(t, sizesOf(decided(t, d, sets...), sets...), map[string]int32{"set-1": 0, "set-2": 3})
}

func TestPausedDeploymentIsScaledButNotRolledOut(t *testing.T) {
	d := rollingTo(deployment(6), 2)
	d.Spec.Paused = true
	sets := []*appsv1.ReplicaSet{set(d, 1, 4, annotate(desiredAnnotation, "4"))}
	p := decided(t, d, sets...)
	wantSizes(t, sizesOf(p, sets...), map[string]int32{"set-1": 6})
	if p.after != 0 {
		t.Errorf("looks again after %s, though the deadline stands still", p.after)
	}
	sets = append(sets, set(d, 2, 3, annotate(desiredAnnotation, "4")))
	sets[0] = set(d, 1, 2, annotate(desiredAnnotation, "4"))
	d = rollingTo(deployment(4), 2)
	d.Spec.Paused = true
	wantSizes(t, sizesOf(decided(t, d, sets...), sets...), map[string]int32{"set-1": 2, "set-2": 3})
}

func TestDeploymentThatIsBeingDeletedGetsItsStatusOnly(t *testing.T) {
	d := rollingTo(deployment(20), 2)
	now := d.CreationTimestamp
	d.DeletionTimestamp = &now
	d.Annotations = map[string]string{"cause": "x"}
	p := decided(t, d, set(d, 1, 20), set(d, 2, 0, annotate(revisionAnnotation, "0")))
	if p.create != nil || len(p.changes)+len(p.remove) > 0 || p.rollback != nil || p.revision != "" {
		t.Errorf("plan = %+v, want no change", p)
	}
	if p.status.Replicas != 20 || p.status.ObservedGeneration != d.Generation {
		t.Errorf("status = %+v", p.status)
	}
}

func TestHistoryIsCleanedUp(t *testing.T) {
	two := int32(2)
	d := rollingTo(deployment(3), 7)
	d.Spec.RevisionHistoryLimit = &two
	unseen := set(d, 2, 0, func(s *appsv1.ReplicaSet) { s.Generation = 2 })
	busy := set(d, 3, 0, func(s *appsv1.ReplicaSet) { s.Status.Replicas = 1 })
	going := set(d, 4, 0, func(s *appsv1.ReplicaSet) { s.DeletionTimestamp = &s.CreationTimestamp })
	sets := []*appsv1.ReplicaSet{set(d, 7, 3), set(d, 6, 0), set(d, 5, 0), going, set(d, 1, 0), unseen}
	removed := func(p plan) string {
		names := ""
		for _, s := range p.remove {
			names += string(s.UID) + " "
		}
		return names
	}
	if got := removed(decided(t, d, sets...)); got != "set-1 " {
		t.Errorf("removed %q, want the lowest revision that its controller has seen", got)
	}
	if got := removed(decided(t, d, append(sets, busy)...)); got != "" {
		t.Errorf("removed %q before the rollout was complete", got)
	}
	d.Spec.Paused = true
	if got := removed(decided(t, d, append(sets, busy)...)); got != "set-1 " {
		t.Errorf("removed %q while paused, want what has no Pods", got)
	}
	none := int32(2147483647)
	d.Spec.RevisionHistoryLimit = &none
	if got := removed(decided(t, d, sets...)); got != "" {
		t.Errorf("removed %q without a limit", got)
	}
}
