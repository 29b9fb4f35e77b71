// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// quiet fails the test if the controller sends a request about Pods or DaemonSets in an hour.
func (c *cluster) quiet() {
	c.t.Helper()
	pass(time.Minute)
	c.Forget()
	pass(time.Hour)
	if calls := append(c.pods.Calls(), c.sets.Calls()...); len(calls) != 0 {
		c.t.Errorf("requests in an hour: %q", calls)
	}
}

func TestGenerationsThatAreNoNumbersLeaveRolloutsToTheHash(t *testing.T) {
	for _, text := range []string{"", "two", "1.5", "99999999999999999999", "NaN", " 1"} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 2)
			c.start()
			c.create(func(set *appsv1.DaemonSet) {
				set.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: text}
			})
			c.turns(5)
			c.want("at first", "node-0=a node-1=a")
			if generation, is := c.allPods()[0].Labels[generationLabel]; is {
				t.Errorf("with the annotation %q the Pods have the generation %q", text, generation)
			}
			c.quiet()
			c.edit(image("b"))
			c.turns(20)
			c.want("after a rollout", "node-0=b node-1=b")
			c.wantStatus("after a rollout", 2, 2, 2, 2, 2, 0, 0)
			c.quiet()
		})
	}
}

func TestDaemonSetsWithOneSelectorKeepTheirOwnPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.start()
		c.create()
		second := agent(image("b"))
		second.Name, second.UID = "other", "other-uid"
		c.put(second)
		c.turns(5)
		c.want("at rest", "node-0=a,b node-1=a,b node-2=a,b")
		c.wantStatus("of the first", 3, 3, 3, 3, 3, 0, 0)
		c.quiet()
		c.edit(image("c"))
		c.turns(30)
		c.want("after a rollout of one of them", "node-0=b,c node-1=b,c node-2=b,c")
		other, err := fakeapi.Read[*appsv1.DaemonSet](c.sets, object.KeyOf(second))
		if err != nil || other.Status.NumberAvailable != 3 || other.Status.UpdatedNumberScheduled != 3 {
			t.Errorf("the status of the other is %+v (%v)", other.Status, err)
		}
	})
}

func TestPodsThatOnlyLookLikeDaemonPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		set := c.create()
		like := func(name string, change func(*corev1.Pod)) *corev1.Pod {
			o := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: agentKey.Namespace, Name: name, Labels: map[string]string{"app": "agent"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: name}}},
			}
			change(o)
			return o
		}
		owner := []metav1.OwnerReference{*metav1.NewControllerRef(set, kind.GroupVersionKind())}
		all := []*corev1.Pod{
			like("elsewhere", func(o *corev1.Pod) { // it names the DaemonSet, which owns nothing in this namespace
				o.Namespace, o.OwnerReferences, o.Spec.NodeName = "team-b", owner, "node-0"
			}),
			like("homeless", func(*corev1.Pod) {}), // the selector selects it, and it may go to any node
			like("torn", func(o *corev1.Pod) { // to two nodes
				o.Spec.Affinity = pinned(nil, "node-0")
				terms := o.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
				terms[0].MatchFields[0].Values = []string{"node-0", "node-1"}
			}),
			like("theirs", func(o *corev1.Pod) { // of a controller of the same name and another kind
				o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "DaemonSet", Name: set.Name, UID: "theirs", Controller: new(true)}}
				o.Spec.NodeName = "node-1"
			}),
		}
		for _, o := range all {
			if err := c.pods.Add(o); err != nil {
				t.Fatal(err)
			}
		}
		c.start()
		c.turns(5)
		c.want("beside them", "=homeless,torn node-0=a,elsewhere node-1=a,theirs")
		c.wantStatus("beside them", 2, 2, 2, 2, 2, 0, 0)
		for _, q := range c.pods.Requests() {
			if q.Key.Namespace == "team-b" {
				t.Errorf("a request about a Pod of another namespace: %s", q.String())
			}
		}
		c.quiet()
	})
}

func TestASelectorThatCannotBeReadDelaysNoOtherDaemonSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		p := c.start()
		bad := agent(func(set *appsv1.DaemonSet) {
			set.Name, set.UID = "bad", "bad-uid"
			set.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Resembles", Values: []string{"agent"}}}}
		})
		c.put(bad)
		c.create()
		c.turns(5)
		c.want("beside it", "node-0=a node-1=a")
		if got := p.Reasons("ops/bad"); len(got) != 1 || !strings.HasPrefix(got[0], codeInvalid+": the label selector cannot be read: \"Resembles\" is not a valid") {
			t.Errorf("the reasons are %q", got)
		}
		c.quiet()
	})
}
