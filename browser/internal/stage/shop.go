// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Objects of the shop.
func web() runs.Object   { return apps("Deployment", "web") }
func older() runs.Object { return apps("ReplicaSet", "web-58c9d5b7f4") }
func newer() runs.Object { return apps("ReplicaSet", "web-6f7c4d9b8") }

func apps(kind, name string) runs.Object {
	return runs.Object{Group: "apps", Kind: kind, Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}
}

func pod(name string) runs.Object {
	return runs.Object{Kind: "Pod", Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}
}

// broken is the image of the newest rollout.
const broken = "registry.example/shop/web:1.99"

// Shop returns a stage with the shop: Deployment web of ten Pods gets an image that cannot be pulled, a quota is used up, and
// a Pod was deleted.
func Shop() (*Stage, error) {
	s, err := New(runs.DefaultBytes)
	if err != nil {
		return nil, err
	}
	s.overview.Loops = loops(s.began)
	return s, errors.Join(s.putObjects(), s.playRollout(), s.playOthers())
}

// putObjects puts the objects of the shop into the cluster.
func (s *Stage) putObjects() error {
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: s.meta(web(), runs.Object{}, labels, owner("kubectl-set", "", s.began, `{"f:spec":{"f:template":{"f:spec":{"f:containers":{}}}}}`),
			owner("setpoint", "status", s.began.Add(time.Second), `{"f:status":{"f:replicas":{}}}`), owner("kubectl-create", "", s.began.Add(-72*time.Hour), `{"f:spec":{"f:replicas":{},"f:selector":{}}}`)),
		Spec:   appsv1.DeploymentSpec{Replicas: new(int32(10)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels, broken)},
		Status: appsv1.DeploymentStatus{Replicas: 11, UpdatedReplicas: 3, ReadyReplicas: 8, AvailableReplicas: 8},
	}
	err := errors.Join(s.resources["namespaces"].Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid-shop"}}), s.resources["deployments"].Put(deployment))
	for o, replicas := range map[runs.Object]int32{older(): 8, newer(): 3} {
		err = errors.Join(err, s.resources["replicasets"].Put(&appsv1.ReplicaSet{
			ObjectMeta: s.meta(o, web(), labels), Spec: appsv1.ReplicaSetSpec{Replicas: new(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels}},
			Status: appsv1.ReplicaSetStatus{Replicas: replicas, ReadyReplicas: replicas % 3 * 4},
		}))
	}
	for i := range 11 {
		of, image := older(), "registry.example/shop/web:1.28"
		if i < 3 {
			of, image = newer(), broken
		}
		name := fmt.Sprintf("%s-%c%c2x", of.Name, 'b'+rune(i), 'x'-rune(i))
		one := &corev1.Pod{ObjectMeta: s.meta(pod(name), of, labels), Spec: template(labels, image).Spec, Status: running(image)}
		if i < 3 {
			one.Status = waiting()
		}
		err = errors.Join(err, s.resources["pods"].Put(one))
	}
	settings := metav1.ObjectMeta{Namespace: "shop", Name: "settings", UID: "uid-settings", CreationTimestamp: metav1.NewTime(s.began.Add(-time.Hour)),
		ManagedFields: []metav1.ManagedFieldsEntry{owner("kubectl-edit", "", s.began.Add(-40*time.Second), `{"f:data":{"f:currency":{}}}`)}}
	return errors.Join(err, s.resources["configmaps"].Put(&corev1.ConfigMap{ObjectMeta: settings}),
		s.resources["events"].Put(&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pull", CreationTimestamp: metav1.NewTime(s.began.Add(5 * time.Second))},
			Type:       "Warning", Reason: "Failed", Message: fmt.Sprintf("Failed to pull image %q: manifest unknown", broken), Count: 6,
			LastTimestamp: metav1.NewTime(s.began.Add(90 * time.Second)), Source: corev1.EventSource{Component: "kubelet"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: newer().Name + "-bx2x", UID: pod(newer().Name + "-bx2x").UID},
		}))
}

// meta returns the metadata of an object of the shop.
func (s *Stage) meta(o, of runs.Object, labels map[string]string, managers ...metav1.ManagedFieldsEntry) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, Labels: labels, ManagedFields: managers, CreationTimestamp: metav1.NewTime(s.began.Add(-72 * time.Hour))}
	if of != (runs.Object{}) {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: of.Kind, Name: of.Name, UID: of.UID, Controller: new(true)}}
	}
	return m
}

func owner(manager, subresource string, at time.Time, fields string) metav1.ManagedFieldsEntry {
	when := metav1.NewTime(at)
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, Time: &when, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func template(labels map[string]string, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "web", Image: image}}}}
}

func running(image string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Image: image, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
}

func waiting() corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Image: broken,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q", broken)}}}}}
}

// playRollout records the rollout.
func (s *Stage) playRollout() error {
	edited, created, scaled := s.nextVersion(), s.nextVersion(), s.nextVersion()
	at := s.began
	updated := func(o runs.Object, version string) workqueue.Cause {
		return workqueue.Cause{Source: "informer", Verb: workqueue.Updated, Ref: o.Ref(), Version: version}
	}
	return errors.Join(
		s.Run("deployment-controller", web(), at.Add(20*time.Millisecond), updated(web(), edited), func(r *runs.Ended) {
			r.Writes = []runs.Write{{Verb: "create", Object: newer(), Version: created, Fields: []string{"spec.replicas", "spec.template"}}}
		}),
		s.Run("replicaset-controller", newer(), at.Add(40*time.Millisecond), updated(newer(), created), func(r *runs.Ended) {
			for _, end := range []string{"bx2x", "cw2x", "dv2x"} {
				r.Writes = append(r.Writes, runs.Write{Verb: "create", Object: pod(newer().Name + "-" + end), Version: s.nextVersion(), Fields: []string{"spec.containers"}})
			}
		}),
		s.Run("deployment-controller", web(), at.Add(time.Second), updated(newer(), created), func(r *runs.Ended) {
			r.Writes = []runs.Write{{Verb: "update", Object: older(), Version: scaled, Fields: []string{"spec.replicas"}}, {Verb: "update", Object: web(), Subresource: "status", Version: s.nextVersion(), Fields: []string{"status.replicas", "status.updatedReplicas"}}}
		}),
		s.Run("replicaset-controller", older(), at.Add(1100*time.Millisecond), updated(older(), scaled), func(r *runs.Ended) {
			r.Writes = []runs.Write{{Verb: "delete", Object: pod(older().Name + "-old7x")}, {Verb: "delete", Object: pod(older().Name + "-old9z")}}
		}),
		s.Run("deployment-controller", web(), at.Add(2*time.Second), updated(older(), s.nextVersion()), func(r *runs.Ended) {
			r.Outcome, r.Next = runs.Again, 10*time.Minute
			r.Reasons = []runs.Reason{{Code: "HeldByMaxUnavailable", Text: "{old} keeps {kept} Pods, as {missing} new Pods are not available",
				Params: []runs.Param{{Name: "old", Value: older().Name}, {Name: "kept", Value: "8"}, {Name: "missing", Value: "3"}}, Ends: "a Pod becomes ready"}}
		}),
	)
}

// playOthers records what else happened: a quota that is used up, and a Job of a schedule.
func (s *Stage) playOthers() error {
	cart := apps("ReplicaSet", "cart-7d4b9c66d8")
	nightly := runs.Object{Group: "batch", Kind: "CronJob", Namespace: "shop", Name: "nightly", UID: "uid-nightly"}
	return errors.Join(
		s.Run("replicaset-controller", cart, s.began.Add(time.Minute), workqueue.Cause{Source: "replicasets", Verb: workqueue.Retry}, func(r *runs.Ended) {
			r.Outcome, r.Error = runs.Failed, `pods "cart-7d4b9c66d8-" is forbidden: exceeded quota: few, requested: pods=1, used: pods=12, limited: pods=12`
			r.Writes = []runs.Write{{Verb: "create", Object: runs.Object{Kind: "Pod", Namespace: "shop", Name: "cart-7d4b9c66d8-"}, Code: 403}}
		}),
		s.Run("cronjob-controller", nightly, s.began.Add(100*time.Second), workqueue.Cause{Source: "cronjobs", Verb: workqueue.Timer}, func(r *runs.Ended) {
			r.Writes = []runs.Write{{Verb: "create", Object: runs.Object{Group: "batch", Kind: "Job", Namespace: "shop", Name: "nightly-29384756"}, Version: s.nextVersion()}}
		}),
	)
}

// loops returns the state of the loops: one in trouble, the others well.
func loops(began time.Time) []manager.LoopView {
	next := began.Add(4 * time.Minute)
	var all []manager.LoopView
	for i, l := range []struct{ name, group, kind string }{
		{"deployment-controller", "apps", "Deployment"}, {"replicaset-controller", "apps", "ReplicaSet"}, {"endpointslice-controller", "", "Service"},
		{"garbage-collector-controller", "", ""}, {"job-controller", "batch", "Job"}, {"cronjob-controller", "batch", "CronJob"}, {"namespace-controller", "", "Namespace"},
		{"persistentvolume-attach-detach-controller", "", "Node"}, {"horizontal-pod-autoscaler-controller", "autoscaling", "HorizontalPodAutoscaler"},
	} {
		v := manager.LoopView{Name: l.name, Group: l.group, Kind: l.kind, Runs: uint64(400 + 37*i)}
		v.Took.Counts[3+i%3], v.Took.Counts[6+i%2] = uint64(380+35*i), 20
		v.Informers = []manager.InformerView{{Kind: l.kind, Synced: true, Heard: time.Now()}}
		if l.name == "replicaset-controller" {
			v.Failing = 1
			v.Failed = []manager.FailedKey{{Key: "shop/cart-7d4b9c66d8", Error: `pods "cart-7d4b9c66d8-" is forbidden: exceeded quota: few, requested: pods=1, used: pods=12, limited: pods=12`, At: began, Runs: 7, Next: &next}}
			v.Waiting = []workqueue.Level{{Priority: workqueue.Normal, Keys: 2, Oldest: began.Add(2 * time.Minute)}}
		}
		all = append(all, v)
	}
	return all
}
