// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controller/podwriter"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
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

func TestPodsThatEndAreReplacedWithABackOffAndEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.broken = func(*corev1.Pod) bool { return true }
		c.start()
		c.create()
		var created []time.Duration
		start, known := time.Now(), ""
		for range 1000 {
			c.kubelets()
			if all := c.allPods(); len(all) == 1 && all[0].Name != known {
				known = all[0].Name
				created = append(created, time.Since(start).Round(time.Second))
			}
			pass(100 * time.Millisecond)
		}
		// The first one that fails is replaced at once.
		want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second, 31 * time.Second, 63 * time.Second}
		if !slices.Equal(created, want) {
			t.Errorf("Pods were created after %v, want %v", created, want)
		}
		notes := c.notes(reasonFailed)
		if len(notes) == 0 || !strings.HasPrefix(notes[0], "Found failed daemon pod ops/agent-") || !strings.HasSuffix(notes[0], " on node node-0, will try to kill it") {
			t.Errorf("the Events say %q", notes)
		}
		// Another template begins anew.
		c.broken = func(*corev1.Pod) bool { return false }
		c.edit(image("b"))
		c.turns(10)
		c.want("with another template", "node-0=b")
	})
}

func TestAPodThatHasSucceededIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.start()
		c.create()
		c.kubelets()
		o := c.allPods()[0]
		o.Status.Phase = corev1.PodSucceeded
		c.put(o)
		c.want("when it has ended", "node-0=a")
		if c.allPods()[0].Name == o.Name {
			t.Error("the Pod is still there")
		}
		if notes := c.notes(reasonSucceeded); len(notes) != 1 || notes[0] != "Found succeeded daemon pod ops/"+o.Name+" on node node-0, will try to delete it" {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestADaemonSetThatSelectsAllPodsTouchesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		c.start()
		c.put(agent(func(set *appsv1.DaemonSet) { set.Spec.Selector = &metav1.LabelSelector{} }))
		c.want("with an empty selector", "")
		if notes := c.notes(reasonSelectingAll); len(notes) != 1 || notes[0] != "This daemon set is selecting all pods. A non-empty selector is required." {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestADaemonSetThatIsBeingDeletedIsLeftAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		c.start()
		deleting := metav1.NewTime(time.Now())
		c.put(agent(func(set *appsv1.DaemonSet) {
			set.DeletionTimestamp, set.Finalizers = &deleting, []string{"orphan"}
		}))
		pass(time.Minute)
		c.want("while it is being deleted", "")
		if n := count(c.sets, "update") + count(c.revisions, "create"); n != 0 {
			t.Errorf("there were %d writes", n)
		}
	})
}

func TestANodeThatGoesTakesWhatIsNotBoundWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		c.start()
		c.create()
		for _, o := range c.allPods() {
			if nodeOf(&o.Spec) == "node-0" {
				o.Spec.NodeName = "node-0"
				c.put(c.running(o))
			}
		}
		c.wantStatus("at first", 2, 2, 2, 1, 1, 1, 0)
		c.nodes.Remove(object.Key{Name: "node-0"})
		c.nodes.Remove(object.Key{Name: "node-1"})
		synctest.Wait()
		c.want("without nodes", "node-0=a") // for the Pod garbage collector
		c.wantStatus("without nodes", 0, 0, 0, 0, 0, 0, 0)
		c.put(node(1))
		c.want("with one of them again", "node-0=a node-1=a")
	})
}

func TestDeadNodesDoNotStopARolloutThatBeginsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4)
		c.start()
		c.create()
		c.kubelets()
		dead := func(i int) *corev1.Node {
			n := node(i, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
			n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, metav1.Now()
			return n
		}
		for i := range 2 {
			c.put(dead(i))
			for _, o := range c.allPods() {
				if o.Spec.NodeName == fmt.Sprintf("node-%d", i) {
					o.Status.Conditions[0].Status = corev1.ConditionFalse
					c.put(o)
				}
			}
		}
		// No kubelet ends the Pods of dead nodes.
		alive := func() {
			for _, o := range c.allPods() {
				if nodeOf(&o.Spec) == "node-2" || nodeOf(&o.Spec) == "node-3" {
					if o.DeletionTimestamp != nil {
						c.pods.Remove(object.KeyOf(o))
						continue
					}
					o.Spec.NodeName = nodeOf(&o.Spec)
					c.put(c.running(o))
				}
			}
			pass(time.Second)
		}
		pass(time.Hour)
		c.edit(image("b"))
		c.want("at first", "node-0=-a node-1=-a node-2=-a node-3=a")
		for range 8 {
			alive()
		}
		c.want("at the end", "node-0=-a node-1=-a node-2=b node-3=b")
		// A node that dies with the new template stops the next one.
		c.put(dead(2))
		for _, o := range c.allPods() {
			if o.Spec.NodeName == "node-2" {
				o.Status.Conditions[0].Status = corev1.ConditionFalse
				c.put(o)
			}
		}
		c.edit(image("c"))
		c.want("when one has died just now", "node-0=-a node-1=-a node-2=-b node-3=b")
		pass(time.Hour)
		c.want("and for as long as it is dead", "node-0=-a node-1=-a node-2=-b node-3=b")
	})
}

func TestAHandedOverDaemonSetWithOtherHashesKeepsItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.start()
		generation := func(n string) func(*appsv1.DaemonSet) {
			return func(set *appsv1.DaemonSet) {
				set.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: n}
			}
		}
		// The Pods are those of a manager of another version of Kubernetes, and so are the hashes.
		set := agent(generation("5"))
		for i := range 3 {
			o := podwriter.FromTemplate(podwriter.Owner{Object: set, Kind: kind}, &set.Spec.Template)
			o.Name, o.Spec.NodeName = fmt.Sprintf("agent-%d", i), fmt.Sprintf("node-%d", i)
			o.Labels = map[string]string{"app": "agent", generationLabel: "5", hashLabel: "other"}
			c.put(c.running(o))
		}
		c.put(set)
		pass(time.Minute)
		c.want("after the handover", "node-0=a node-1=a node-2=a")
		c.wantStatus("after the handover", 3, 3, 3, 3, 3, 0, 0)
	})
}

// becomesReadyBeforeItsDelete makes a Pod ready that is not, when the controller is about to delete
// it.
func (c *cluster) becomesReadyBeforeItsDelete() {
	c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
		if q.Verb != "delete" {
			return nil
		}
		if err := fakeapi.Change(c.pods, q.Key, getReady); err != nil {
			c.t.Error(err)
		}
		return nil
	})
}

// A rollout replaces a Pod that is not available whatever maxUnavailable is. It must not replace one
// that has become available meanwhile.
func TestARolloutKeepsAPodThatBecomesAvailableBeforeItIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.slow = func(o *corev1.Pod) bool { return nodeOf(&o.Spec) != "node-0" }
		c.start()
		c.create()
		c.kubelets()
		c.wantStatus("before the rollout", 3, 3, 3, 1, 1, 2, 0)
		c.becomesReadyBeforeItsDelete()
		c.edit(image("b"))
		pass(time.Minute)
		c.want("with node-1 and node-2 back", "node-0=-a node-1=a node-2=a")
		c.pods.Before(nil)
		c.slow = func(*corev1.Pod) bool { return false }
		c.turns(6)
		c.want("at the end", "node-0=b node-1=b node-2=b")
	})
}

// With maxSurge, an old Pod that is not ready goes without waiting for its successor. One that has
// become ready meanwhile serves until the successor is available.
func TestARolloutWithSurgeKeepsAPodThatBecomesReadyBeforeItIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.slow = func(*corev1.Pod) bool { return true }
		c.start()
		c.create(limits(intstr.FromInt32(1), intstr.FromInt32(0)))
		c.kubelets()
		c.becomesReadyBeforeItsDelete()
		c.edit(image("b"))
		pass(time.Minute)
		c.want("with the old Pod back", "node-0=a,b")
		c.slow = func(*corev1.Pod) bool { return false }
		c.kubelets()
		c.want("when the new one is available", "node-0=-a,b")
	})
}

// The change that stops the delete of a Pod may be one that starts no run: an address, say.
func TestAPodThatIsNotAvailableIsReplacedThoughItChangesBeforeItIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.slow = func(*corev1.Pod) bool { return true }
		c.start()
		c.create()
		c.kubelets()
		const changes = 5 // the last of which come when nothing else starts a run
		changed := 0
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "delete" || changed == changes {
				return nil
			}
			changed++
			if err := fakeapi.Change(c.pods, q.Key, func(o *corev1.Pod) { o.Status.PodIP = fmt.Sprint("10.0.0.", changed) }); err != nil {
				t.Error(err)
			}
			return nil
		})
		c.edit(image("b"))
		pass(time.Minute)
		c.want("after the changes", "node-0=-a")
	})
}
