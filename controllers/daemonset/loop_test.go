// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestEveryNodeThatFitsGetsOnePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		c.put(node(2, taint(corev1.TaintEffectNoSchedule)), node(3, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}))
		c.start()
		c.create()
		c.want("at first", "node-0=a node-1=a node-3=a")
		c.wantStatus("at first", 3, 3, 3, 0, 0, 3, 0)
		for _, o := range c.allPods() {
			if o.Spec.NodeName != "" {
				t.Errorf("Pod %s is bound by the controller, not by the scheduler", o.Name)
			}
		}
		c.kubelets()
		c.wantStatus("when they run", 3, 3, 3, 3, 3, 0, 0)
		c.put(node(4))
		c.want("with another node", "node-0=a node-1=a node-3=a node-4=a")
		c.put(node(2))
		c.want("without the taint", "node-0=a node-1=a node-2=a node-3=a node-4=a")
		if c.set().Status.ObservedGeneration != 1 {
			t.Errorf("the observed generation is %d", c.set().Status.ObservedGeneration)
		}
	})
}

func TestATaintNoScheduleKeepsAPodAndNoExecuteEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		c.start()
		c.create()
		c.kubelets()
		c.put(node(0, taint(corev1.TaintEffectNoSchedule)))
		c.want("with NoSchedule", "node-0=a node-1=a")
		c.wantStatus("with NoSchedule", 1, 1, 1, 1, 1, 0, 1)
		c.put(node(1, taint(corev1.TaintEffectNoExecute)))
		c.want("with NoExecute", "node-0=a node-1=-a")
		c.kubelets()
		c.want("when it is gone", "node-0=a")
		c.wantStatus("when it is gone", 0, 0, 0, 0, 0, 0, 1)
	})
}

func TestARolloutReplacesAsManyPodsAsMayBeUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.start()
		c.create()
		c.kubelets()
		c.edit(image("b"))
		c.want("at first", "node-0=-a node-1=a node-2=a")
		c.kubelets()
		c.want("when the first one is gone", "node-0=b node-1=a node-2=a")
		c.kubelets()
		c.want("when its successor is ready", "node-0=b node-1=-a node-2=a")
		c.turns(6)
		c.want("at the end", "node-0=b node-1=b node-2=b")
		c.wantStatus("at the end", 3, 3, 3, 3, 3, 0, 0)
		if n := len(c.allRevisions()); n != 2 {
			t.Errorf("there are %d revisions, want 2", n)
		}
	})
}

func TestARolloutWithSurgeDeletesAnOldPodWhenItsSuccessorIsAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.start()
		c.create(limits(intstr.FromInt32(1), intstr.FromInt32(0)), func(set *appsv1.DaemonSet) { set.Spec.MinReadySeconds = 10 })
		c.kubelets()
		pass(time.Minute)
		c.edit(image("b"))
		c.want("at first", "node-0=a,b node-1=a node-2=a")
		c.kubelets()
		c.want("when the new one is ready", "node-0=a,b node-1=a node-2=a")
		pass(11 * time.Second)
		c.want("when it is available", "node-0=-a,b node-1=a,b node-2=a")
		for range 5 {
			c.kubelets()
			pass(11 * time.Second)
		}
		c.kubelets()
		c.want("at the end", "node-0=b node-1=b node-2=b")
	})
}
