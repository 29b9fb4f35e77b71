// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controller/owned"
)

// midday is when the tests of decisions happen.
var midday = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// web returns a StatefulSet as the API server completes it.
func web(replicas int32, change ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set", Generation: 1},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: "web", PodManagementPolicy: appsv1.OrderedReadyPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: template("web:2"),
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(0)), MaxUnavailable: new(intstr.FromInt32(1))},
			},
			RevisionHistoryLimit: new(int32(10)),
		},
	}
	for _, f := range change {
		f(set)
	}
	return set
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(30)), Containers: []corev1.Container{{Name: "main", Image: image}},
		},
	}
}

// Changes of a StatefulSet.
func parallel(set *appsv1.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }

func onDelete(set *appsv1.StatefulSet) {
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
}

func recreate(set *appsv1.StatefulSet) {
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RecreateStatefulSetStrategyType}
}

// plainRolling is the strategy RollingUpdate without further fields, which the server leaves as it is.
func plainRolling(current int32) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate = nil
		set.Status.CurrentReplicas = current
	}
}

func partition(n int32) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = &n }
}

func maxUnavailable(text string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.Parse(text))
	}
}

func minReady(seconds int32) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.MinReadySeconds = seconds }
}

func startAt(ordinal int32) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: ordinal} }
}

func withClaims(scaled, deleted appsv1.PersistentVolumeClaimRetentionPolicyType) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: map[string]string{"tier": "db"}}}}
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: scaled, WhenDeleted: deleted}
	}
}

// The revisions of a StatefulSet in these tests.
const (
	oldRevision = "web-old"
	newRevision = "web-new"
)

// pod returns a member as the API server has it just after its creation: Pending, without a node.
func pod(set *appsv1.StatefulSet, ordinal int, revision string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := newPod(set, version{revision, &set.Spec.Template}, ordinal)
	p.UID = types.UID(fmt.Sprintf("pod-%d", ordinal))
	p.Status.Phase = corev1.PodPending
	for _, f := range change {
		f(p)
	}
	return p
}

// Changes of a Pod.
func ready(p *corev1.Pod) { readySince(midday.Add(-time.Hour))(p) }

func readySince(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		starting(p)
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
	}
}

// starting is a Pod whose containers run since a minute ago and that has never been ready.
func starting(p *corev1.Pod) { startingSince(midday.Add(-time.Minute))(p) }

func startingSince(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		begin := metav1.NewTime(at)
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &begin
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: begin}}}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: begin}}
	}
}

// pulls is a Pod whose image cannot be pulled.
func pulls(p *corev1.Pod) {
	starting(p)
	p.Status.Phase = corev1.PodPending
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
}

// crashes is a Pod that has never been ready and whose container fails.
func crashes(p *corev1.Pod) {
	starting(p)
	p.Status.ContainerStatuses[0].RestartCount = 3
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
}

// runsAgain is a Pod that has never been ready, whose container has failed and runs again since a minute ago.
func runsAgain(p *corev1.Pod) {
	startingSince(midday.Add(-time.Hour))(p)
	c := &p.Status.ContainerStatuses[0]
	c.RestartCount, c.State.Running.StartedAt = 1, metav1.NewTime(midday.Add(-time.Minute))
}

// unready is a Pod that was ready before.
func unready(p *corev1.Pod) {
	starting(p)
	p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(midday.Add(-time.Second))
}

func failed(p *corev1.Pod)    { p.Status.Phase = corev1.PodFailed }
func succeeded(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
func leaving(p *corev1.Pod)   { p.DeletionTimestamp = new(metav1.NewTime(midday)) }

// claimOf returns the claim of a member, with owners.
func claimOf(set *appsv1.StatefulSet, ordinal int, owners ...metav1.OwnerReference) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: claimName(set, "data", ordinal), OwnerReferences: owners,
	}}
}

func bySet(set *appsv1.StatefulSet) metav1.OwnerReference {
	return owned.By(set, kind.GroupVersionKind())
}

// seen returns a view of a StatefulSet whose rollout leads from the old to the new revision.
func seen(set *appsv1.StatefulSet, pods []*corev1.Pod, claims ...*corev1.PersistentVolumeClaim) view {
	slices.SortFunc(pods, ascending)
	before := template("web:1")
	return view{
		set: set, pods: pods, now: midday, collisions: new(int32),
		current: version{oldRevision, &before}, update: version{newRevision, &set.Spec.Template},
		foreign: func(string) *corev1.Pod { return nil },
		claim: func(name string) *corev1.PersistentVolumeClaim {
			for _, c := range claims {
				if c.Name == name {
					return c
				}
			}
			return nil
		},
	}
}

// does returns the writes of a plan as text.
func does(p plan) string {
	var all []string
	add := func(verb string, pods []*corev1.Pod) {
		for _, pod := range pods {
			all = append(all, verb+" "+pod.Name)
		}
	}
	add("restart", p.restart)
	for _, pod := range p.create {
		all = append(all, "create "+pod.Name+" of "+strings.TrimPrefix(revisionOf(pod), "web-"))
	}
	for _, c := range p.claims {
		if c.create {
			all = append(all, "create "+c.claim.Name)
			continue
		}
		text := "owners of " + c.claim.Name + ":"
		for _, ref := range c.claim.OwnerReferences {
			text += " " + ref.Name
		}
		all = append(all, text)
	}
	add("relabel", p.relabel)
	add("delete", slices.Concat(p.broken, p.delete))
	return strings.Join(all, ", ")
}

// codes returns the codes of the reasons of a plan.
func codes(p plan) string {
	var all []string
	for _, r := range p.reasons {
		all = append(all, r.Code)
	}
	return strings.Join(all, " ")
}

func checkPlan(t *testing.T, v view, want string) plan {
	t.Helper()
	p := decide(v)
	if got := does(p); got != want {
		t.Errorf("it does %q, want %q; reasons %v", got, want, p.reasons)
	}
	return p
}
