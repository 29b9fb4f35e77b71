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

// daemons is a DaemonSet that is updated node by node.
type daemons struct {
	*stage
	release
	from int // changes of Pods before the last change
}

func newDaemons(s *stage) work {
	d := &daemons{stage: s, release: 1}
	labels := map[string]string{"app": "agent"}
	_, err := client.For[*appsv1.DaemonSet](s.Client).Create(s.t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: d.template(labels)},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (d *daemons) change() {
	d.t.Helper()
	d.from = d.pods.count()
	d.release++
	patch, err := d.patch()
	if err == nil {
		_, err = client.For[*appsv1.DaemonSet](d.Client).Patch(d.t.Context(), d.key("agent"), patch)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *daemons) begun() bool { return d.pods.count() > d.from+1 }

func (d *daemons) missing() string {
	set, err := client.For[*appsv1.DaemonSet](d.Client).Get(d.t.Context(), d.key("agent"))
	if err != nil {
		return err.Error()
	}
	if s := set.Status; s.ObservedGeneration != set.Generation || s.UpdatedNumberScheduled != nodes || s.NumberAvailable != nodes {
		return fmt.Sprintf("the status of the DaemonSet is %+v", s)
	}
	return d.wrong(d.pods.now(), nodes)
}

// inBounds holds that no node has two Pods, and that one of them is not available at most.
func (d *daemons) inBounds(pods map[types.UID]*corev1.Pod) error {
	available, on := 0, map[string]string{}
	for _, pod := range pods {
		if !alive(pod) {
			continue
		}
		node := nodeOf(pod)
		if other := on[node]; other != "" {
			return fmt.Errorf("the Pods %s and %s are for node %s", other, pod.Name, node)
		}
		if on[node] = pod.Name; ready(pod) {
			available++
		}
	}
	if available < nodes-1 {
		return fmt.Errorf("%d Pods are available on %d nodes", available, nodes)
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
