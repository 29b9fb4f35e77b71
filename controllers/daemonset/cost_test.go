// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// costs are what the controller has done since it was asked last.
type costs struct {
	compared int // nodes with templates
	decoded  int // Pods
	runs     int // of DaemonSets
}

// spent returns the costs since the last call.
func (c *cluster) spent(before *costs) costs {
	var is costs
	for _, m := range c.reconciler.memories {
		is.compared += m.places.compared
		is.decoded += m.reader.decoded
		is.runs += m.runs
	}
	was := *before
	*before = is
	return costs{is.compared - was.compared, is.decoded - was.decoded, is.runs - was.runs}
}

// manySets creates DaemonSets, the first ones of which want nodes with a label.
func (c *cluster) manySets(n, labelled int) {
	for i := range n {
		name := fmt.Sprintf("agent-%02d", i)
		c.put(agent(func(set *appsv1.DaemonSet) {
			set.Name, set.UID = name, types.UID(name)
			set.Spec.Selector.MatchLabels = map[string]string{"app": name}
			set.Spec.Template.Labels = map[string]string{"app": name}
			if i < labelled {
				set.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
			}
		}))
	}
}

func TestANodeCostsTheSameHoweverManyNodesThereAre(t *testing.T) {
	for _, nodes := range []int{5, 50} {
		synctest.Test(t, func(t *testing.T) {
			const sets, labelled = 10, 3
			c := newCluster(t, nodes)
			c.start()
			c.manySets(sets, labelled)
			var before costs
			if got := c.spent(&before); got.compared != nodes*sets {
				t.Errorf("at first %d nodes were compared, want each with each DaemonSet once: %d", got.compared, nodes*sets)
			}
			beat := node(0)
			beat.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
			c.put(beat)
			if got := c.spent(&before); got != (costs{}) {
				t.Errorf("a heartbeat costs %+v, want nothing", got)
			}
			odd := node(0)
			odd.Labels["mood"] = "sunny"
			c.put(odd)
			if got := c.spent(&before); got != (costs{compared: sets}) {
				t.Errorf("a label that nobody asks for costs %+v, want one comparison for each DaemonSet, and no run", got)
			}
			fits := node(0)
			fits.Labels["disk"] = "ssd"
			c.put(fits)
			if got := c.spent(&before); got.compared != sets || got.runs == 0 || got.runs > 3*labelled {
				t.Errorf("a label that %d DaemonSets ask for costs %+v, want runs of them alone", labelled, got)
			}
			c.put(node(nodes))
			if got := c.spent(&before); got.compared != sets || got.decoded > 2*sets {
				t.Errorf("another node costs %+v, want one comparison for each DaemonSet, and no Pod of another node decoded", got)
			}
		})
	}
}

func TestAPodEventCostsNothingForDaemonSetsThatItDoesNotConcern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 20)
		c.start()
		c.manySets(10, 0)
		c.kubelets()
		var before costs
		c.spent(&before)

		all := c.allPods()
		o := all[0]
		o.Status.Conditions[0].Status = corev1.ConditionFalse
		c.put(o)
		if got := c.spent(&before); got.runs < 1 || got.runs > 2 || got.decoded != 1 || got.compared != 0 {
			t.Errorf("a Pod that is no longer ready costs %+v, want a run of its DaemonSet and one for the status, and that Pod decoded", got)
		}
		o = all[1]
		o.Status.PodIP = "10.0.0.9"
		c.put(o)
		if got := c.spent(&before); got != (costs{}) {
			t.Errorf("an address costs %+v, want nothing", got)
		}
		// One state is decoded whole, with its node, and the next one is not.
		whole, err := c.reconciler.pods.Get(object.KeyOf(o))
		if err != nil {
			t.Fatal(err)
		}
		o = whole.DeepCopy()
		o.Status.PodIP = "10.0.0.10"
		c.put(o)
		if got := c.spent(&before); got != (costs{}) {
			t.Errorf("another address costs %+v, want nothing", got)
		}
		runtime.KeepAlive(whole)
		c.put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "other", Labels: map[string]string{"app": "other"}}})
		c.put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ops", Name: "of-a-set", Labels: map[string]string{"app": "agent-03"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "agent-03", UID: "r", Controller: new(true)}},
		}})
		c.pods.Remove(object.Key{Namespace: "ops", Name: "of-a-set"})
		synctest.Wait()
		if got := c.spent(&before); got != (costs{}) {
			t.Errorf("Pods of other controllers cost %+v, want nothing", got)
		}
	})
}
