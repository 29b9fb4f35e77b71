// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller/events"
)

func TestRevisionIsOneMoreThanTheHighest(t *testing.T) {
	d := rollingTo(deployment(3), 4)
	p := decided(t, d, set(d, 1, 0), set(d, 3, 3), set(d, 2, 0, annotate(revisionAnnotation, "no number")))
	if p.create == nil || p.create.Annotations[revisionAnnotation] != "4" || p.revision != "4" {
		t.Errorf("revision of the set %v, of the Deployment %q, want 4", p.create, p.revision)
	}
}

func TestRollingBackGivesTheSetANewRevisionAndKeepsTheOldOne(t *testing.T) {
	d := rollingTo(deployment(3), 1)
	p := decided(t, d, set(d, 1, 0), set(d, 2, 3))
	for _, c := range p.changes {
		if c.set.UID == "set-1" {
			if c.annotations[revisionAnnotation] != "3" || c.annotations[revisionHistoryAnnotation] != "1" {
				t.Errorf("annotations = %v, want revision 3 and history 1", c.annotations)
			}
		}
	}
	if p.revision != "3" {
		t.Errorf("the Deployment's revision = %q, want 3", p.revision)
	}
}

func TestRevisionIsNeverLowered(t *testing.T) {
	d := deployment(3)
	d.Spec.Template = template("7")
	p := decided(t, d, set(d, 7, 3), set(d, 2, 0))
	if len(p.changes) != 0 || p.revision != "7" {
		t.Errorf("changes %v and revision %q, want none and 7", p.changes, p.revision)
	}
}

func TestRevisionHistoryIsBounded(t *testing.T) {
	history := ""
	for i := 1000; i < 3000; i++ {
		history = lengthened(history, fmt.Sprint(i))
		if len(history) > historyMost {
			t.Fatalf("the history has %d bytes", len(history))
		}
	}
	if !strings.HasSuffix(history, ",2998,2999") || !strings.HasPrefix(history, "2600,2601,") {
		t.Errorf("the oldest are not the ones that went: %s", history)
	}
}

func TestAnnotationsOfTheDeploymentAreHandedToTheCurrentSet(t *testing.T) {
	d := deployment(2)
	d.Annotations = map[string]string{
		"kubernetes.io/change-cause":       "a new image",
		corev1.LastAppliedConfigAnnotation: "{}",
		appsv1.DeprecatedRollbackTo:        "no number",
		revisionAnnotation:                 "99",
		desiredAnnotation:                  "98",
		maxAnnotation:                      "97",
		revisionHistoryAnnotation:          "96",
	}
	p := decided(t, d)
	want := map[string]string{"kubernetes.io/change-cause": "a new image", revisionAnnotation: "1", desiredAnnotation: "2", maxAnnotation: "3"}
	if fmt.Sprint(p.create.Annotations) != fmt.Sprint(want) {
		t.Errorf("annotations of a new set = %v, want %v", p.create.Annotations, want)
	}

	current := set(d, 1, 2, annotate("own", "stays"))
	p = decided(t, d, current)
	if len(p.changes) != 1 || fmt.Sprint(p.changes[0].annotations) != "map[kubernetes.io/change-cause:a new image]" {
		t.Errorf("changes of the current set = %+v, want the change cause alone", p.changes)
	}
}

func TestMinReadySecondsAreHandedToTheCurrentSetAlone(t *testing.T) {
	d := rollingTo(deployment(4), 2)
	d.Spec.MinReadySeconds = 30
	p := decided(t, d, set(d, 1, 0, func(s *appsv1.ReplicaSet) { s.Spec.MinReadySeconds = 5 }),
		set(d, 2, 4, func(s *appsv1.ReplicaSet) { s.Spec.MinReadySeconds = 5 }))
	if len(p.changes) != 1 || p.changes[0].set.UID != "set-2" || p.changes[0].minReadySeconds != 30 {
		t.Errorf("changes = %+v, want minReadySeconds 30 of the current set", p.changes)
	}
	if patch := fmt.Sprint(p.changes[0].patch()); patch != "map[metadata:map[resourceVersion:1 uid:set-2] spec:map[minReadySeconds:30]]" {
		t.Errorf("patch = %s", patch)
	}
}

func TestOldestOfSeveralSetsWithTheTemplateIsTheCurrentOne(t *testing.T) {
	d := deployment(2)
	twin := set(d, 1, 2, func(s *appsv1.ReplicaSet) {
		s.Name, s.UID = "twin", "twin"
		s.CreationTimestamp.Time = s.CreationTimestamp.AddDate(0, 0, 1)
	})
	current, old := split(d, []*appsv1.ReplicaSet{twin, set(d, 1, 0)})
	if current == nil || current.UID != "set-1" || len(old) != 1 || old[0].UID != "twin" {
		t.Errorf("current %v, old %v", current, old)
	}
}

func TestRollbackByAnnotation(t *testing.T) {
	for _, c := range []struct {
		name, to string
		sets     func(*appsv1.Deployment) []*appsv1.ReplicaSet
		image    string
		event    events.Planned
	}{
		{"to a revision", "1", nil, "web:1", events.Planned{Reason: reasonRollback, Action: actionReconcile, Note: `Rolled back deployment "web" to revision 1`}},
		{"to the one before", "0", nil, "web:2", events.Planned{Reason: reasonRollback, Action: actionReconcile, Note: `Rolled back deployment "web" to revision 2`}},
		{"to the current one", "3", nil, "web:3", events.Planned{Warning: true, Reason: reasonRollbackUnchanged, Action: actionReconcile, Note: `The rollback revision contains the same template as current deployment "web"`}},
		{"to one that is unknown", "9", nil, "web:3", events.Planned{Warning: true, Reason: reasonRollbackUnknown, Action: actionReconcile, Note: "Unable to find the revision to rollback to."}},
		{"to the one before the only one", "0", func(d *appsv1.Deployment) []*appsv1.ReplicaSet { return []*appsv1.ReplicaSet{set(d, 3, 3)} },
			"web:3", events.Planned{Warning: true, Reason: reasonRollbackUnknown, Action: actionReconcile, Note: "Unable to find last revision."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := rollingTo(deployment(3), 3)
			d.Annotations = map[string]string{appsv1.DeprecatedRollbackTo: c.to, revisionAnnotation: "3", "cause": "three"}
			sets := []*appsv1.ReplicaSet{
				set(d, 1, 0, annotate("cause", "one")), set(d, 2, 0, annotate("cause", "two")), set(d, 3, 3, annotate("cause", "three")),
			}
			if c.sets != nil {
				sets = c.sets(d)
				sets[0].Annotations["cause"] = "three"
			}
			p := decided(t, d, sets...)
			if p.rollback == nil || p.create != nil || len(p.changes)+len(p.remove) > 0 {
				t.Fatalf("plan = %+v, want a rollback and nothing else", p)
			}
			if image := p.rollback.Spec.Template.Spec.Containers[0].Image; image != c.image {
				t.Errorf("image = %s, want %s", image, c.image)
			}
			if len(p.events) != 1 || p.events[0] != c.event {
				t.Errorf("events = %+v, want %+v", p.events, c.event)
			}
			if _, still := p.rollback.Annotations[appsv1.DeprecatedRollbackTo]; still || p.rollback.Annotations[revisionAnnotation] != "3" {
				t.Errorf("annotations = %v, want the request gone and the revision kept", p.rollback.Annotations)
			}
			if _, hashed := p.rollback.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hashed {
				t.Error("the template kept the label of its ReplicaSet")
			}
			want := map[string]string{"web:1": "one", "web:2": "two", "web:3": "three"}[c.image]
			if cause := p.rollback.Annotations["cause"]; cause != want {
				t.Errorf("the change cause is %q, want %q", cause, want)
			}
		})
	}
}

func TestRollbackFirstGivesTheCurrentTemplateItsRevision(t *testing.T) {
	d := rollingTo(deployment(3), 3)
	d.Annotations = map[string]string{appsv1.DeprecatedRollbackTo: "0"}
	if p := decided(t, d, set(d, 1, 0), set(d, 2, 3)); p.rollback != nil || p.create == nil {
		t.Errorf("plan = %+v, want the current set to be created first", p)
	}
	if p := decided(t, d, set(d, 2, 3), set(d, 3, 0, annotate(revisionAnnotation, ""))); p.rollback != nil || len(p.changes) != 1 {
		t.Errorf("plan = %+v, want the current set to get its revision first", p)
	}
}
