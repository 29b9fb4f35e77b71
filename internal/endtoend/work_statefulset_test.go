// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
)

// members are the Pods of a StatefulSet that is updated one after the other.
type members struct {
	*stage
	release
	from int // changes of Pods before the last change
}

const memberCount = 4

func newMembers(s *stage) work {
	m := &members{stage: s, release: 1}
	count, labels := int32(memberCount), map[string]string{"app": "db"}
	_, err := client.For[*appsv1.StatefulSet](s.Client).Create(s.t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &count, ServiceName: "db",
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: m.template(labels),
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

func (m *members) change() {
	m.t.Helper()
	m.from = m.pods.count()
	m.release++
	patch, err := m.patch()
	if err == nil {
		_, err = client.For[*appsv1.StatefulSet](m.Client).Patch(m.t.Context(), m.key("db"), patch)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *members) begun() bool { return m.pods.count() > m.from+1 }

func (m *members) missing() string {
	set, err := client.For[*appsv1.StatefulSet](m.Client).Get(m.t.Context(), m.key("db"))
	if err != nil {
		return err.Error()
	}
	s := set.Status
	if s.ObservedGeneration != set.Generation || s.UpdatedReplicas != memberCount || s.AvailableReplicas != memberCount ||
		s.Replicas != memberCount || s.CurrentRevision != s.UpdateRevision {
		return fmt.Sprintf("the status of the StatefulSet is %+v", s)
	}
	return m.wrong(m.pods.now(), memberCount)
}

// inBounds holds that one member is away at most, and that no ordinal has two Pods.
func (m *members) inBounds(pods map[types.UID]*corev1.Pod) error {
	available, names := 0, map[string]bool{}
	for _, pod := range pods {
		if names[pod.Name] {
			return fmt.Errorf("there are two Pods %s", pod.Name)
		}
		names[pod.Name] = true
		if alive(pod) && ready(pod) {
			available++
		}
	}
	if available < memberCount-1 {
		return fmt.Errorf("%d members of %d are available", available, memberCount)
	}
	return nil
}
