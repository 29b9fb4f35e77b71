// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package tainteviction

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server in memory, used inside of a synctest bubble.
type cluster struct {
	t      *testing.T
	pods   *fakeapi.Resource
	nodes  *fakeapi.Resource
	events *fakeapi.Resource
	client *client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	server := fakeapi.New()
	c := &cluster{
		t:      t,
		pods:   server.Serve(podResource),
		nodes:  server.Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}),
		events: server.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}),
	}
	var err error
	if c.client, err = client.New(c.pods.Config()); err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs the controller.
func (c *cluster) start() *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.pods.Config(), managertest.Making(New, Defaults()))
	synctest.Wait()
	return p
}

// pass lets time pass, and what is due then be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (c *cluster) addNode(name string, taints ...corev1.Taint) {
	c.t.Helper()
	if err := c.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) addPod(name, node string, tolerations ...corev1.Toleration) {
	c.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node, Tolerations: tolerations}}
	if err := c.pods.Add(pod); err != nil {
		c.t.Fatal(err)
	}
}

// taint has a node have these taints, and lets what follows be done.
func (c *cluster) taint(name string, taints ...corev1.Taint) {
	c.t.Helper()
	change(c.t, client.For[*corev1.Node](c.client), object.Key{Name: name}, map[string]any{"taints": taints})
}

func (c *cluster) tolerate(name string, tolerations ...corev1.Toleration) {
	c.t.Helper()
	change(c.t, client.For[*corev1.Pod](c.client), object.Key{Namespace: "shop", Name: name}, map[string]any{"tolerations": tolerations})
}

func change[T object.Object](t *testing.T, of client.Typed[T], key object.Key, spec map[string]any) {
	t.Helper()
	patch, err := client.MergePatch(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := of.Patch(t.Context(), key, patch); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// want compares the Pods that there are.
func (c *cluster) want(when string, names ...string) {
	c.t.Helper()
	for i := range names {
		names[i] = "shop/" + names[i]
	}
	if got := c.pods.Keys(); !slices.Equal(got, names) {
		c.t.Fatalf("%s there are the Pods %v, want %v", when, got, names)
	}
}

// said returns the notes of Events, in order.
func (c *cluster) said() []string {
	c.t.Helper()
	synctest.Wait()
	var notes []string
	for _, text := range c.events.Keys() {
		key, err := object.ParseKey(text)
		if err != nil {
			c.t.Fatal(err)
		}
		event := c.events.Get(key)
		note, _ := event.Object["note"].(string)
		reason, _ := event.Object["reason"].(string)
		notes = append(notes, reason+": "+note)
	}
	slices.Sort(notes)
	return notes
}

func TestAPodGoesWhenItsTimeIsUpAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addNode("n1")
		c.addNode("n2")
		c.addPod("at-once", "n1")
		c.addPod("elsewhere", "n2")
		c.addPod("for-ever", "n1", tolerate("gone", forever))
		c.addPod("minute", "n1", tolerate("gone", 60))
		c.addPod("pending", "")
		process := c.start()
		pass(time.Hour)
		c.want("without a taint", "at-once", "elsewhere", "for-ever", "minute", "pending")
		c.taint("n1", taint("gone"))
		c.want("at once", "elsewhere", "for-ever", "minute", "pending")
		reasons := process.Reasons("shop/minute")
		if want := "TaintTolerated: the Pod tolerates the taints of node n1 until "; len(reasons) != 1 || !strings.HasPrefix(reasons[0], want) {
			t.Errorf("the reasons of the Pod are %q, want %q and a time", reasons, want)
		}
		pass(time.Minute - time.Second)
		c.want("a second before the minute", "elsewhere", "for-ever", "minute", "pending")
		pass(time.Second)
		c.want("after the minute", "elsewhere", "for-ever", "pending")
		want := []string{"TaintManagerEviction: Marking for deletion Pod shop/at-once", "TaintManagerEviction: Marking for deletion Pod shop/minute"}
		if said := c.said(); !slices.Equal(said, want) {
			t.Errorf("the events say %q, want %q", said, want)
		}
	})
}

func TestPodsThatWereEvictedAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addNode("n1", taint("gone"))
		c.addPod("at-once", "n1")
		c.addPod("for-ever", "n1", tolerate("gone", forever))
		c.addPod("minute", "n1", tolerate("gone", 60))
		var refuses atomic.Bool
		refuses.Store(true)
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "delete" && refuses.Load() {
				return fakeapi.Forbidden("pods")
			}
			return nil
		})
		var metrics prometheus.Collector
		managertest.Run(t, c.pods.Config(), managertest.MakingMetrics(New, Defaults(), &metrics))
		want := func(when string, n float64) {
			t.Helper()
			series := managertest.Series(t, metrics)
			for _, name := range []string{"taint_eviction_controller_pod_deletions_total", "taint_eviction_controller_pod_deletion_duration_seconds"} {
				if got, has := series[name]; got != n || !has {
					t.Errorf("%s %s is %v, want %v", when, name, got, n)
				}
			}
		}
		synctest.Wait()
		want("while deletes are refused", 0)
		refuses.Store(false)
		pass(time.Hour)
		want("at the end", 2)
	})
}

func TestTimersAreCancelledWhenTheTaintGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addNode("n1", taint("gone"))
		c.addPod("minute", "n1", tolerate("gone", 60))
		c.start()
		pass(59 * time.Second)
		c.taint("n1")
		pass(time.Hour)
		c.want("without the taint", "minute")
		if said := c.said(); !slices.Equal(said, []string{"TaintManagerEviction: Cancelling deletion of Pod shop/minute"}) {
			t.Errorf("the events say %q", said)
		}
		c.taint("n1", taint("gone"))
		pass(59 * time.Second)
		c.want("before a whole new minute", "minute")
		pass(time.Second)
		c.want("after a whole new minute")
	})
}

func TestTolerationsThatChangeCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addNode("n1", taint("gone"))
		c.addPod("longer", "n1", tolerate("gone", 60))
		c.addPod("shorter", "n1", tolerate("gone", 60))
		c.addPod("for-ever", "n1", tolerate("gone", 60))
		c.start()
		pass(30 * time.Second)
		c.tolerate("longer", tolerate("gone", 90))
		c.tolerate("shorter", tolerate("gone", 40))
		c.tolerate("for-ever", tolerate("gone", forever))
		pass(9 * time.Second)
		c.want("after 39 s", "for-ever", "longer", "shorter")
		pass(time.Second)
		c.want("after 40 s", "for-ever", "longer")
		pass(49 * time.Second)
		c.want("after 89 s", "for-ever", "longer")
		pass(time.Second)
		c.want("after 90 s", "for-ever")
		pass(time.Hour)
		c.want("after an hour", "for-ever")
	})
}

func TestAPodThatComesLaterHasItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addNode("n1", taint("gone"))
		c.start()
		pass(time.Hour)
		c.addPod("late", "", tolerate("gone", 60))
		c.addPod("later", "n1", tolerate("gone", 60))
		pass(30 * time.Second)
		change(t, client.For[*corev1.Pod](c.client), object.Key{Namespace: "shop", Name: "late"}, map[string]any{"nodeName": "n1"})
		pass(30 * time.Second)
		c.want("after a minute", "late")
		pass(29 * time.Second)
		c.want("a minute after it was bound, but for a second", "late")
		pass(time.Second)
		c.want("a minute after it was bound")
	})
}

func TestAPodOfTheSameNameIsAnotherPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addNode("n1", taint("gone"))
		c.addPod("web", "n1", tolerate("gone", 60))
		c.start()
		pass(30 * time.Second)
		if err := client.For[*corev1.Pod](c.client).Delete(t.Context(), object.Key{Namespace: "shop", Name: "web"}); err != nil {
			t.Fatal(err)
		}
		c.addPod("web", "n1", tolerate("gone", 60))
		pass(59 * time.Second)
		c.want("before its own minute", "web")
		pass(time.Second)
		c.want("after its own minute")
	})
}

func TestADeletionThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var failures atomic.Int32
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "delete" || failures.Add(1) > 7 {
				return nil
			}
			return fakeapi.Unavailable(0)
		})
		c.addNode("n1", taint("gone"))
		c.addPod("web", "n1")
		p := c.start()
		pass(time.Minute)
		c.want("after some tries")
		patches := 0
		for _, w := range p.Writes() {
			if strings.HasPrefix(w, "PATCH") {
				patches++
			}
		}
		if patches != 1 {
			t.Errorf("the condition was written %d times, want once: %v", patches, p.Writes())
		}
		if said := c.said(); len(said) != 1 {
			t.Errorf("the events say %q, want one", said)
		}
	})
}

func TestTheConditionIsWrittenBeforeTheDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var seen []corev1.PodCondition
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "delete" {
				var pod corev1.Pod
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.pods.Get(object.Key{Namespace: "shop", Name: "web"}).Object, &pod); err != nil {
					t.Error(err)
				}
				seen = pod.Status.Conditions
			}
			return nil
		})
		c.addNode("n1", taint("gone"))
		c.addPod("web", "n1")
		c.start()
		c.want("at once")
		if len(seen) != 1 || seen[0].Type != corev1.DisruptionTarget || seen[0].Status != corev1.ConditionTrue ||
			seen[0].Reason != "DeletionByTaintManager" || seen[0].Message != "Taint manager: deleting due to NoExecute taint" {
			t.Errorf("when it was deleted its conditions were %v", seen)
		}
	})
}

// Time starts anew with the process, and no Pod is deleted twice.
func TestAProcessThatIsKilledLeavesEachPodItsWholeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addNode("n1", taint("gone"))
		for i := range 20 {
			c.addPod(fmt.Sprintf("at-once-%02d", i), "n1")
		}
		c.addPod("minute", "n1", tolerate("gone", 60))
		for range 5 {
			p := c.start()
			pass(20 * time.Second)
			p.Kill()
			c.want("after a process was killed", "minute")
		}
		c.start()
		pass(59 * time.Second)
		c.want("before a whole minute of one process", "minute")
		pass(time.Second)
		c.want("after it")
		if said := c.said(); len(said) != 21 {
			t.Errorf("%d events, want one for each of 21 Pods: %q", len(said), said)
		}
	})
}

func TestWithoutATaintPodsStartNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addNode("n1", corev1.Taint{Key: "busy", Effect: corev1.TaintEffectNoSchedule})
		c.addNode("n2")
		var made *controller.Controller
		managertest.Run(t, c.pods.Config(), func(mgr *manager.Manager) (manager.Runnable, error) {
			c, err := New(mgr, Defaults())
			if err == nil {
				made = c.(interface{ Loops() []controller.Loop }).Loops()[0].(*controller.Controller)
			}
			return c, err
		})
		for i := range 10 {
			c.addPod(fmt.Sprintf("web-%d", i), "n1")
		}
		pass(time.Second)
		if runs := made.Queue().Stats().Adds; runs != 0 {
			t.Errorf("%d runs were asked for", runs)
		}
		c.taint("n2", taint("gone"))
		c.addPod("web", "n1")
		pass(time.Second)
		if runs := made.Queue().Stats().Adds; runs != 0 {
			t.Errorf("%d runs were asked for, with a taint that is no business of the Pods", runs)
		}
	})
}

func TestNegativeWorkersAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(mgr, Options{Workers: -1}); err == nil || !strings.Contains(err.Error(), "-1 workers") {
		t.Errorf("New with -1 workers = %v, want an error that says so", err)
	}
}

var podResource = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
