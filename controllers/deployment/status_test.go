// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// seen gives a Deployment the status that a plan wrote.
func seen(d *appsv1.Deployment, p plan) *appsv1.Deployment {
	d = d.DeepCopy()
	d.Status = p.status
	d.Annotations = map[string]string{revisionAnnotation: p.revision}
	return d
}

func TestStatusAddsUpTheSets(t *testing.T) {
	two, three := int32(2), int32(3)
	d := rollingTo(deployment(10), 2)
	d.Status.CollisionCount = &two
	p := decided(t, d,
		set(d, 1, 6, func(s *appsv1.ReplicaSet) {
			s.Status.ReadyReplicas, s.Status.AvailableReplicas = 5, 4
			s.Status.TerminatingReplicas = &two
		}),
		set(d, 2, 5, func(s *appsv1.ReplicaSet) {
			s.Status.ReadyReplicas, s.Status.AvailableReplicas = 3, 3
			s.Status.TerminatingReplicas = &three
		}))
	p.status.Conditions = nil
	five := int32(5)
	want := appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 11, UpdatedReplicas: 5, ReadyReplicas: 8, AvailableReplicas: 7,
		UnavailableReplicas: 4, TerminatingReplicas: &five, CollisionCount: &two,
	}
	if !apiequality.Semantic.DeepEqual(p.status, want) {
		t.Errorf("status = %+v, want %+v", p.status, want)
	}
}

func TestUnavailableIsNeverNegative(t *testing.T) {
	d := deployment(1)
	if p := decided(t, d, set(d, 1, 1, working(4))); p.status.UnavailableReplicas != 0 {
		t.Errorf("unavailable = %d", p.status.UnavailableReplicas)
	}
}

func TestTerminatingIsUnknownWhereASetDoesNotCount(t *testing.T) {
	d := deployment(1)
	uncounted := func(s *appsv1.ReplicaSet) { s.Status.TerminatingReplicas = nil }
	if p := decided(t, d, set(d, 1, 1, uncounted), set(d, 2, 0)); p.status.TerminatingReplicas != nil {
		t.Errorf("terminating = %d, want unknown", *p.status.TerminatingReplicas)
	}
	fresh := func(s *appsv1.ReplicaSet) { s.Status = appsv1.ReplicaSetStatus{} }
	if p := decided(t, d, set(d, 1, 1, fresh), set(d, 2, 0)); p.status.TerminatingReplicas == nil || *p.status.TerminatingReplicas != 0 {
		t.Errorf("terminating = %v, want 0: nobody has looked at the first set yet", p.status.TerminatingReplicas)
	}
}

func TestAvailableCondition(t *testing.T) {
	d := deployment(8)
	p := decided(t, d, set(d, 1, 8, working(6)))
	wantCondition(t, p.status, appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability.")
	p = decided(t, d, set(d, 1, 8, working(5)))
	wantCondition(t, p.status, appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
}

func TestProgressingFollowsARollout(t *testing.T) {
	d := deployment(2)
	now := began
	step := func(sets ...*appsv1.ReplicaSet) plan {
		t.Helper()
		now = now.Add(time.Second)
		p := decidedAt(t, now, d, sets...)
		d = seen(d, p)
		return p
	}
	name := newSet(d, 0).Name
	p := step()
	wantCondition(t, p.status, appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetCreated", `Created new replica set "`+name+`"`)
	p = step(set(d, 1, 2, working(0)))
	wantCondition(t, p.status, appsv1.DeploymentProgressing, corev1.ConditionTrue, "ReplicaSetUpdated", `ReplicaSet "`+name+`" is progressing.`)
	p = step(set(d, 1, 2, working(1)))
	c := condition(&p.status, appsv1.DeploymentProgressing)
	if !c.LastUpdateTime.Time.Equal(now) || !c.LastTransitionTime.Time.Equal(began.Add(time.Second)) {
		t.Errorf("progress at %s is %+v: want the update moved and the transition kept", now, c)
	}
	p = step(set(d, 1, 2))
	wantCondition(t, p.status, appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable", `ReplicaSet "`+name+`" has successfully progressed.`)
	before := p.status
	p = step(set(d, 1, 2, working(1)))
	wantCondition(t, p.status, appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable", `ReplicaSet "`+name+`" has successfully progressed.`)
	if p.after != 0 {
		t.Errorf("looks again after %s, though the rollout is over", p.after)
	}
	p = step(set(d, 1, 2))
	if p.status.AvailableReplicas != before.AvailableReplicas {
		t.Errorf("status = %+v", p.status)
	}
}

func TestNothingIsWrittenWhereNothingChanged(t *testing.T) {
	for _, sets := range [][]*appsv1.ReplicaSet{
		{set(deployment(3), 1, 3)},
		{set(deployment(3), 1, 3, working(2))},
	} {
		d := deployment(3)
		d = seen(d, decided(t, d, sets...))
		p := decidedAt(t, began.Add(2*time.Hour), d, sets...)
		if condition(&p.status, appsv1.DeploymentProgressing).Reason == reasonTimedOut {
			d = seen(d, p)
			p = decidedAt(t, began.Add(3*time.Hour), d, sets...)
		}
		if !apiequality.Semantic.DeepEqual(p.status, d.Status) || p.revision != d.Annotations[revisionAnnotation] || len(p.changes)+len(p.remove) > 0 {
			t.Errorf("plan = %+v for status %+v", p, d.Status)
		}
	}
}

func TestProgressDeadline(t *testing.T) {
	d := deployment(2)
	d = seen(d, decidedAt(t, began, d))
	stuck := set(d, 1, 2, working(0))
	d = seen(d, decidedAt(t, began, d, stuck))
	for _, c := range []struct {
		passed time.Duration
		reason string
		again  time.Duration
	}{
		{0, reasonUpdated, 601 * time.Second},
		{7 * time.Minute, reasonUpdated, 181 * time.Second},
		{10 * time.Minute, reasonUpdated, time.Second},
		{10*time.Minute + time.Second, reasonTimedOut, 0},
	} {
		p := decidedAt(t, began.Add(c.passed), d, stuck)
		got := condition(&p.status, appsv1.DeploymentProgressing)
		if got.Reason != c.reason || p.after != c.again {
			t.Errorf("after %s: %s, again after %s; want %s, %s", c.passed, got.Reason, p.after, c.reason, c.again)
		}
		if c.reason == reasonTimedOut {
			wantCondition(t, p.status, appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded",
				`ReplicaSet "`+stuck.Name+`" has timed out progressing.`)
		}
	}
}

func TestWithoutDeadlineThereIsNoProgressingCondition(t *testing.T) {
	d := deployment(2)
	d = seen(d, decided(t, d))
	never := int32(2147483647)
	for _, seconds := range []*int32{nil, &never} {
		d.Spec.ProgressDeadlineSeconds = seconds
		p := decided(t, d, set(d, 1, 2, working(0)))
		if c := condition(&p.status, appsv1.DeploymentProgressing); c != nil || p.after != 0 {
			t.Errorf("condition = %+v, again after %s", c, p.after)
		}
	}
}

func TestPauseStopsTheDeadline(t *testing.T) {
	d := deployment(2)
	stuck := set(d, 1, 2, working(0))
	d = seen(d, decidedAt(t, began, d, stuck))
	d.Spec.Paused = true
	p := decidedAt(t, began.Add(time.Minute), d, stuck)
	wantCondition(t, p.status, appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentPaused", "Deployment is paused")
	d = seen(d, p)
	d.Spec.Paused = false
	resumed := began.Add(time.Hour)
	p = decidedAt(t, resumed, d, stuck)
	wantCondition(t, p.status, appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentResumed", "Deployment is resumed")
	if p.after != 601*time.Second {
		t.Errorf("looks again after %s, want the whole deadline", p.after)
	}
}

func TestFailedRolloutStaysFailedWhilePaused(t *testing.T) {
	d := deployment(2)
	stuck := set(d, 1, 2, working(0))
	d = seen(d, decidedAt(t, began, d, stuck))
	d = seen(d, decidedAt(t, began.Add(time.Hour), d, stuck))
	d.Spec.Paused = true
	p := decided(t, d, stuck)
	if c := condition(&p.status, appsv1.DeploymentProgressing); c.Reason != reasonTimedOut {
		t.Errorf("condition = %+v", c)
	}
}

func TestRollbackAfterATimeoutHasADeadlineOfItsOwn(t *testing.T) {
	d := rollingTo(deployment(2), 2)
	d = seen(d, decidedAt(t, began, d, set(d, 1, 2), set(d, 2, 1, working(0))))
	d = seen(d, decidedAt(t, began.Add(time.Hour), d, set(d, 1, 2), set(d, 2, 1, working(0))))
	if c := condition(&d.Status, appsv1.DeploymentProgressing); c.Reason != reasonTimedOut {
		t.Fatalf("condition = %+v", c)
	}
	d = rollingTo(d, 1)
	p := decidedAt(t, began.Add(2*time.Hour), d, set(d, 1, 2, working(0)), set(d, 2, 1, working(0)))
	if c := condition(&p.status, appsv1.DeploymentProgressing); c.Status != corev1.ConditionTrue {
		t.Errorf("condition = %+v, want the rollback to progress", c)
	}
}

func TestReplicaFailureIsTakenFromTheSets(t *testing.T) {
	failing := func(reason string) func(*appsv1.ReplicaSet) {
		return func(s *appsv1.ReplicaSet) {
			s.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
				Reason: reason, Message: "quota", LastTransitionTime: metav1.NewTime(began)}}
		}
	}
	d := rollingTo(deployment(2), 2)
	p := decided(t, d, set(d, 1, 1, failing("FailedDelete")), set(d, 2, 1, failing("FailedCreate")))
	wantCondition(t, p.status, appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate", "quota")
	p = decided(t, d, set(d, 1, 1, failing("FailedDelete")), set(d, 2, 1))
	wantCondition(t, p.status, appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedDelete", "quota")
	p = decided(t, seen(d, p), set(d, 1, 1), set(d, 2, 1))
	if c := condition(&p.status, appsv1.DeploymentReplicaFailure); c != nil {
		t.Errorf("condition = %+v after the failure has passed", c)
	}
}

func TestFailedCreationIsWrittenOnce(t *testing.T) {
	d := rollingTo(deployment(2), 2)
	for try := range 4 {
		now := began.Add(time.Duration(try) * time.Minute)
		p := decidedAt(t, now, d, set(d, 1, 2))
		status := withoutCreation(d, p.status, notCreated(p.create.Name, errors.New("exceeded quota")), now)
		wantCondition(t, status, appsv1.DeploymentProgressing, corev1.ConditionFalse, "ReplicaSetCreateError",
			`Failed to create new replica set "`+p.create.Name+`": exceeded quota`)
		if status.ObservedGeneration != d.Generation {
			t.Errorf("observed generation %d of %d", status.ObservedGeneration, d.Generation)
		}
		if try > 0 && !apiequality.Semantic.DeepEqual(status, d.Status) {
			t.Errorf("try %d writes again: %+v after %+v", try, status, d.Status)
		}
		d.Status = status
	}
}

func TestEmptySelectorTakesNothing(t *testing.T) {
	d := deployment(2)
	d.Generation = 3
	p := selectingAll(d)
	if len(p.events) != 1 || p.events[0].Reason != "SelectingAll" || !p.events[0].Warning || p.create != nil || p.status.ObservedGeneration != 3 {
		t.Errorf("plan = %+v", p)
	}
}
