// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controller/podlimits"
)

// began is when the tests' Deployments were created.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// deployment returns a Deployment as the API server would have filled it in, with
// 25 % of surge and of unavailability.
func deployment(replicas int32) *appsv1.Deployment {
	quarter := intstr.FromString("25%")
	limit, deadline := int32(10), int32(600)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web", UID: "web-uid", Generation: 1, CreationTimestamp: metav1.NewTime(began)},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: template("1"),
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &quarter, MaxUnavailable: &quarter},
			},
			RevisionHistoryLimit:    &limit,
			ProgressDeadlineSeconds: &deadline,
		},
	}
}

// limits returns those of a Deployment that the API server has accepted.
func limits(d *appsv1.Deployment) podlimits.Limits {
	l, err := podlimits.Deployment(d)
	if err != nil {
		panic(err)
	}
	return l
}

func recreating(replicas int32) *appsv1.Deployment {
	d := deployment(replicas)
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	return d
}

func template(version string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:" + version}}},
	}
}

// set returns the set of a version's template, with that many Pods, all available.
// Higher versions are younger, and have been rolled out later.
func set(d *appsv1.Deployment, version int, replicas int32, change ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	of := d.DeepCopy()
	of.Spec.Template = template(fmt.Sprint(version))
	s := newSet(of, replicas)
	s.UID = types.UID(fmt.Sprintf("set-%d", version))
	s.ResourceVersion = "1"
	s.Generation = 1
	s.CreationTimestamp = metav1.NewTime(began.Add(time.Duration(version) * time.Minute))
	s.Annotations = map[string]string{revisionAnnotation: fmt.Sprint(version)}
	maps.Copy(s.Annotations, sized(s, limits(d)))
	none := int32(0)
	s.Status = appsv1.ReplicaSetStatus{
		Replicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas, ObservedGeneration: 1, TerminatingReplicas: &none,
	}
	for _, f := range change {
		f(s)
	}
	return s
}

// working says how many Pods of a set are ready, and all of these available.
func working(n int32) func(*appsv1.ReplicaSet) {
	return func(s *appsv1.ReplicaSet) { s.Status.ReadyReplicas, s.Status.AvailableReplicas = n, n }
}

// annotate sets an annotation of a set.
func annotate(key, to string) func(*appsv1.ReplicaSet) {
	return func(s *appsv1.ReplicaSet) { s.Annotations[key] = to }
}

// rollingTo gives a Deployment the template of a version, and the status that
// belongs to its sets before.
func rollingTo(d *appsv1.Deployment, version int) *appsv1.Deployment {
	d.Spec.Template = template(fmt.Sprint(version))
	d.Generation++
	return d
}

// decided returns the plan for a Deployment an hour after it was created.
func decided(t *testing.T, d *appsv1.Deployment, sets ...*appsv1.ReplicaSet) plan {
	t.Helper()
	return decidedAt(t, began.Add(time.Hour), d, sets...)
}

func decidedAt(t *testing.T, now time.Time, d *appsv1.Deployment, sets ...*appsv1.ReplicaSet) plan {
	t.Helper()
	p, err := decide(view{deployment: d, sets: sets, now: now})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sizesOf returns the sizes of sets by version after a plan; a set that is to be
// created has the version "new".
func sizesOf(p plan, sets ...*appsv1.ReplicaSet) map[string]int32 {
	sizes := map[string]int32{}
	for _, s := range sets {
		sizes[string(s.UID)] = size(s)
	}
	for _, c := range p.changes {
		sizes[string(c.set.UID)] = c.replicas
	}
	if p.create != nil {
		sizes["new"] = size(p.create)
	}
	return sizes
}

func wantSizes(t *testing.T, got map[string]int32, want map[string]int32) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("sizes = %v, want %v", got, want)
	}
}

func wantCondition(t *testing.T, s appsv1.DeploymentStatus, typ appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) {
	t.Helper()
	c := condition(&s, typ)
	if c == nil || c.Status != status || c.Reason != reason || c.Message != message {
		t.Errorf("condition %s = %+v, want %s %s %q", typ, c, status, reason, message)
	}
}
