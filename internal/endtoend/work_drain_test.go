// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/client"
)

// drain is a node that an administrator drains with kubectl, one node after the other, under a
// budget that allows less than a node's Pods at a time. kubectl asks again every 5 s. The node is
// the one with the Pod of a StatefulSet, whose volume moves with it.
type drain struct {
	*stage
	node   string // that was drained last and is cordoned; "" before the first one
	before map[types.UID]bool

	mu   sync.Mutex
	over bool
	said error // by the last kubectl drain
}

const (
	guarded      = 6
	leastGuarded = 5
	nodes        = 3
)

func newDrain(s *stage) work {
	d := &drain{stage: s, over: true}
	labels := map[string]string{"app": "guarded"}
	count, least := int32(guarded), intstr.FromInt32(leastGuarded)
	_, err := client.For[*policyv1.PodDisruptionBudget](s.Client).Create(s.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "guarded"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	})
	if err == nil {
		_, err = client.For[*appsv1.ReplicaSet](s.Client).Create(s.t.Context(), &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "guarded"},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"sim.setpoint.io/ready-after": "200ms"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web"}}},
				},
			},
		})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	d.createHolder()
	s.t.Cleanup(func() {
		if err := d.uncordon(); err != nil {
			s.t.Error(err)
		}
	})
	return d
}

// uncordon takes the last node back into service.
func (d *drain) uncordon() error {
	if d.node == "" {
		return nil
	}
	_, err := d.Kubectl("uncordon", d.node)
	return err
}

// change takes the last node back into service and drains the one with the volume.
func (d *drain) change() {
	d.t.Helper()
	if err := d.uncordon(); err != nil {
		d.t.Fatal(err)
	}
	pods := d.pods.now()
	for _, pod := range pods {
		if pod.Labels["app"] == "holder" {
			d.node = pod.Spec.NodeName
		}
	}
	d.before = map[types.UID]bool{}
	for uid, pod := range pods {
		if pod.Spec.NodeName == d.node {
			d.before[uid] = true
		}
	}
	d.finish(false, nil)
	ctx, cancel := context.WithCancel(d.t.Context())
	var task sync.WaitGroup
	task.Go(func() {
		for ctx.Err() == nil {
			_, err := d.Kubectl("drain", d.node, "--pod-selector", "app in (guarded, holder)", "--timeout", patience.String())
			d.finish(err == nil, err)
			if err == nil {
				return
			}
			// kubectl gives up when the server is away, and its user begins anew.
			time.Sleep(time.Second)
		}
	})
	d.t.Cleanup(func() {
		cancel()
		task.Wait()
	})
}

func (d *drain) finish(over bool, said error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over, d.said = over, said
}

// begun reports whether the first Pod of the node has been evicted, or none was there.
func (d *drain) begun() bool {
	left := 0
	for uid, pod := range d.pods.now() {
		if d.before[uid] && pod.DeletionTimestamp == nil {
			left++
		}
	}
	return left < len(d.before) || len(d.before) == 0
}

func (d *drain) missing() string {
	d.mu.Lock()
	over, said := d.over, d.said
	d.mu.Unlock()
	if !over {
		return fmt.Sprintf("kubectl drain %s is not over; it said %v", d.node, said)
	}
	healthy, elsewhere := 0, 0
	all := d.pods.now()
	pods := guardedOf(all)
	for _, pod := range pods {
		if ready(pod) {
			healthy++
		}
		if pod.Spec.NodeName != d.node {
			elsewhere++
		}
	}
	if healthy != guarded || len(pods) != guarded || elsewhere != guarded {
		return fmt.Sprintf("%d Pods, %d ready, %d on other nodes, want %d", len(pods), healthy, elsewhere, guarded)
	}
	budget, err := client.For[*policyv1.PodDisruptionBudget](d.Client).Get(d.t.Context(), d.key("guarded"))
	if err != nil {
		return err.Error()
	}
	if s := budget.Status; s.CurrentHealthy != guarded || s.DisruptionsAllowed != guarded-leastGuarded || s.ExpectedPods != guarded || len(s.DisruptedPods) > 0 {
		return fmt.Sprintf("the status of the budget is %+v", s)
	}
	return d.misplaced(all)
}

// guardedOf returns the Pods that the budget is about.
func guardedOf(pods map[types.UID]*corev1.Pod) map[types.UID]*corev1.Pod {
	guarded := map[types.UID]*corev1.Pod{}
	for uid, pod := range pods {
		if pod.Labels["app"] == "guarded" {
			guarded[uid] = pod
		}
	}
	return guarded
}

func (d *drain) inBounds(pods map[types.UID]*corev1.Pod) error {
	healthy := 0
	for _, pod := range guardedOf(pods) {
		if alive(pod) && ready(pod) {
			healthy++
		}
	}
	if healthy < leastGuarded {
		return fmt.Errorf("%d Pods are healthy, and the budget wants %d", healthy, leastGuarded)
	}
	return nil
}
