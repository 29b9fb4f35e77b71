// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// set is a StatefulSet or a DaemonSet: each of its Pods has a place of its own, an ordinal or a
// node. It is updated one place after the other.
type set[T object.Object] struct {
	*stage
	release
	places  int
	placeOf func(*corev1.Pod) string
	pending func(T) string           // what its status does not say yet
	kept    func() ([]string, error) // what no update replaces; nil is nothing
	before  []string                 // that, when all was there for the first time
	from    int                      // changes of Pods before the last change
}

const (
	setName     = "set"
	memberCount = 4
)

var setLabels = map[string]string{"app": setName}

func newMembers(s *stage) work {
	m := &set[*appsv1.StatefulSet]{
		stage: s, release: 1, places: memberCount,
		placeOf: func(pod *corev1.Pod) string { return pod.Name },
		pending: func(set *appsv1.StatefulSet) string {
			s := set.Status
			if s.ObservedGeneration != set.Generation || s.UpdatedReplicas != memberCount || s.AvailableReplicas != memberCount ||
				s.Replicas != memberCount || s.CurrentRevision != s.UpdateRevision {
				return fmt.Sprintf("the status of the StatefulSet is %+v", s)
			}
			return ""
		},
	}
	m.kept = m.claims
	m.create(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: setName},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(memberCount)), ServiceName: setName,
			Selector: &metav1.LabelSelector{MatchLabels: setLabels}, Template: m.template(setLabels),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}},
		},
	})
	return m
}

// claims are the claims of the members with their volumes. An update replaces Pods, and no claim.
func (s *set[T]) claims() (all []string, err error) {
	claims, _, err := client.For[*corev1.PersistentVolumeClaim](s.Client).List(s.t.Context(), client.Selection{Namespace: s.namespace})
	for _, c := range claims {
		if c.Status.Phase != corev1.ClaimBound || c.DeletionTimestamp != nil {
			return nil, fmt.Errorf("the claim %s is %s", c.Name, c.Status.Phase)
		}
		all = append(all, fmt.Sprint(c.Name, " ", c.UID, " ", c.Spec.VolumeName))
	}
	slices.Sort(all)
	return all, err
}

func newDaemons(s *stage) work {
	d := &set[*appsv1.DaemonSet]{
		stage: s, release: 1, places: nodes, placeOf: nodeOf,
		pending: func(set *appsv1.DaemonSet) string {
			if s := set.Status; s.ObservedGeneration != set.Generation || s.UpdatedNumberScheduled != nodes || s.NumberAvailable != nodes {
				return fmt.Sprintf("the status of the DaemonSet is %+v", s)
			}
			return ""
		},
	}
	d.create(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: setName},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: setLabels}, Template: d.template(setLabels)},
	})
	return d
}

func (s *set[T]) create(o T) {
	s.t.Helper()
	if _, err := client.For[T](s.Client).Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

func (s *set[T]) change() {
	s.t.Helper()
	s.from = s.pods.count()
	s.release++
	patch, err := s.patch()
	if err == nil {
		_, err = client.For[T](s.Client).Patch(s.t.Context(), s.key(setName), patch)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *set[T]) begun() bool { return s.pods.count() > s.from+1 }

func (s *set[T]) missing() string {
	o, err := client.For[T](s.Client).Get(s.t.Context(), s.key(setName))
	if err != nil {
		return err.Error()
	}
	if pending := s.pending(o); pending != "" {
		return pending
	}
	if wrong := s.wrong(s.pods.now(), s.places); wrong != "" || s.kept == nil {
		return wrong
	}
	kept, err := s.kept()
	if err != nil {
		return err.Error()
	}
	if s.before == nil {
		s.before = kept
	}
	if len(kept) != s.places || !slices.Equal(s.before, kept) {
		s.t.Fatalf("the claims and volumes are %q, and were %q", kept, s.before)
	}
	return ""
}

// inBounds holds that no place has two Pods, and that one of them is not available at most.
func (s *set[T]) inBounds(pods map[types.UID]*corev1.Pod) error {
	available, at := 0, map[string]string{}
	for _, pod := range pods {
		if !alive(pod) {
			continue
		}
		place := s.placeOf(pod)
		if other := at[place]; other != "" {
			return fmt.Errorf("the Pods %s and %s are both at %s", other, pod.Name, place)
		}
		if at[place] = pod.Name; ready(pod) {
			available++
		}
	}
	if available < s.places-1 {
		return fmt.Errorf("%d Pods are available at %d places", available, s.places)
	}
	return nil
}

// nodeOf returns the node that a Pod of a DaemonSet is on, or is for before it is scheduled.
func nodeOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
}
