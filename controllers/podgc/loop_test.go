// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server in memory, used inside of a synctest bubble.
type cluster struct {
	t           *testing.T
	pods, nodes *fakeapi.Resource
	client      *client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	server := fakeapi.New()
	c := &cluster{
		t:     t,
		pods:  server.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}),
		nodes: server.Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}),
	}
	var err error
	if c.client, err = client.New(c.config()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) config() *rest.Config { return c.pods.Config() }

// start runs the controller, which looks at once.
func (c *cluster) start(o Options) *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.config(), managertest.Making(New, o))
	synctest.Wait()
	return p
}

func (c *cluster) add(objects ...metav1.Object) {
	c.t.Helper()
	for _, o := range objects {
		server := c.pods
		if _, isNode := o.(*corev1.Node); isNode {
			server = c.nodes
		}
		if err := server.Add(o); err != nil {
			c.t.Fatal(err)
		}
	}
	synctest.Wait()
}

func (c *cluster) removeNode(name string) {
	c.t.Helper()
	if err := client.For[*corev1.Node](c.client).Delete(c.t.Context(), object.Key{Name: name}); err != nil {
		c.t.Fatal(err)
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

// pass lets time pass, and what is due then be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestOrphansGoAfterAQuarantineAndALiveGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var asked atomic.Int32
		c.nodes.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "get" {
				asked.Add(1)
			}
			return nil
		})
		c.add(newNode("n1", corev1.ConditionTrue), newNode("n2", corev1.ConditionTrue))
		c.add(newPod("a", "n1"), newPod("b", "n2"), newPod("c", ""))
		p := c.start(Defaults())
		pass(10 * time.Second)
		c.removeNode("n1")
		pass(10 * time.Second) // a look finds that it is missing
		pass(39 * time.Second)
		c.want("within the quarantine", "a", "b", "c")
		if asked.Load() != 0 {
			t.Errorf("the server was asked %d times within the quarantine", asked.Load())
		}
		pass(time.Second)
		c.want("after the quarantine", "b", "c")
		if asked.Load() != 2 {
			t.Errorf("the server was asked %d times, want twice: by the look, and before the removal", asked.Load())
		}
		if want := []string{"PATCH /api/v1/namespaces/shop/pods/a/status", "DELETE /api/v1/namespaces/shop/pods/a"}; !slices.Equal(p.Writes(), want) {
			t.Errorf("writes %q, want %q", p.Writes(), want)
		}
	})
}

func TestNobodyIsAnOrphanWhoseNodeTheServerKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(newPod("a", "n1"))
		c.start(Defaults())
		pass(10 * time.Second)
		c.nodes.HoldWatches(true)
		c.add(newNode("n1", corev1.ConditionTrue))
		pass(10 * time.Minute)
		c.want("while the informer of nodes lags", "a")
	})
}

func TestNobodyIsAnOrphanWhileTheServerCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var answers atomic.Bool
		c.nodes.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "get" && !answers.Load() {
				return fakeapi.Unavailable(0)
			}
			return nil
		})
		c.add(newPod("a", "n1"))
		c.start(Defaults())
		pass(10 * time.Minute)
		c.want("while nobody can be asked", "a")
		answers.Store(true)
		pass(time.Minute)
		c.want("a minute later")
	})
}

func TestEndedPodsGoBeyondTheThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(newNode("n1", corev1.ConditionTrue))
		for i := range 5 {
			c.add(newPod(fmt.Sprintf("done-%d", i), "n1", inPhase(corev1.PodSucceeded)))
			c.add(newPod(fmt.Sprintf("runs-%d", i), "n1"))
			pass(time.Second)
		}
		c.start(keeping(3))
		c.want("at once", "done-2", "done-3", "done-4", "runs-0", "runs-1", "runs-2", "runs-3", "runs-4")
		c.add(newPod("done-5", "n1", inPhase(corev1.PodFailed)))
		pass(19 * time.Second)
		c.want("before the next look", "done-2", "done-3", "done-4", "done-5", "runs-0", "runs-1", "runs-2", "runs-3", "runs-4")
		pass(time.Second)
		c.want("after it", "done-3", "done-4", "done-5", "runs-0", "runs-1", "runs-2", "runs-3", "runs-4")
	})
}

func TestTheThresholdCanBeSwitchedOff(t *testing.T) {
	for _, n := range []int{0, -5} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.add(newNode("n1", corev1.ConditionTrue), newPod("done", "n1", inPhase(corev1.PodSucceeded)))
			c.start(keeping(n))
			pass(time.Hour)
			c.want("without a threshold", "done")
		})
	}
}

func TestUnscheduledTerminatingPodsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(newPod("pending", ""), newPod("terminating", "", deletedWith(30)), newPod("held", "", deletedWith(0), held))
		p := c.start(Defaults())
		pass(time.Minute)
		// No server would delete it: a finalizer holds it, which waits for its end.
		c.want("after three looks", "held", "pending")
		writes := 0
		for _, w := range p.Writes() {
			if strings.Contains(w, "/held") {
				writes++
			}
		}
		if phase, _ := c.pods.Get(object.Key{Namespace: "shop", Name: "held"}).Object["status"].(map[string]any)["phase"].(string); phase != "Failed" || writes != 1 {
			t.Errorf("the Pod that a finalizer holds is %s after %d writes, want Failed after one", phase, writes)
		}
	})
}

func TestTerminatingPodsOfANodeOutOfServiceGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(newNode("out", corev1.ConditionUnknown, corev1.TaintNodeOutOfService), newNode("down", corev1.ConditionUnknown), newNode("up", corev1.ConditionTrue, corev1.TaintNodeOutOfService))
		for _, node := range []string{"down", "out", "up"} {
			c.add(newPod("runs-"+node, node), newPod("terminates-"+node, node, deletedWith(30)))
		}
		c.start(Defaults())
		pass(time.Minute)
		c.want("after three looks", "runs-down", "runs-out", "runs-up", "terminates-down", "terminates-up")
	})
}

// putOutOfService changes whether the server has a node with the taint, and gives it another
// UID if it is to be another node.
func (c *cluster) putOutOfService(name string, out, another bool) {
	c.t.Helper()
	nodes := client.For[*corev1.Node](c.client)
	node, err := nodes.Get(c.t.Context(), object.Key{Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	if another {
		c.removeNode(name)
		c.add(newNode(name, corev1.ConditionUnknown, corev1.TaintNodeOutOfService))
		return
	}
	node.Spec.Taints = nil
	if out {
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	}
	if _, err := nodes.Update(c.t.Context(), node); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func TestNoPodIsRemovedOnTheWordOfAnInformerThatLags(t *testing.T) {
	for name, change := range map[string]func(*cluster){
		"the taint was taken off": func(c *cluster) { c.putOutOfService("out", false, false) },
		"the node is gone":        func(c *cluster) { c.removeNode("out") },
		"it is another node":      func(c *cluster) { c.putOutOfService("out", true, true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.add(newNode("out", corev1.ConditionUnknown, corev1.TaintNodeOutOfService))
				p := c.start(Defaults())
				c.nodes.HoldWatches(true)
				change(c)
				c.add(newPod("terminates", "out", deletedWith(30)))
				pass(5 * time.Minute)
				c.want("while the informer of nodes lags", "terminates")
				if n := len(p.Writes()); n != 0 {
					t.Errorf("writes %q, want none", p.Writes())
				}
			})
		})
	}
}

func TestNoPodIsRemovedWhileTheServerCannotBeAskedForItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var answers atomic.Bool
		c.nodes.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "get" && !answers.Load() {
				return fakeapi.Unavailable(0)
			}
			return nil
		})
		c.add(newNode("out", corev1.ConditionUnknown, corev1.TaintNodeOutOfService), newPod("terminates", "out", deletedWith(30)))
		c.start(Defaults())
		pass(5 * time.Minute)
		c.want("while nobody can be asked", "terminates")
		answers.Store(true)
		pass(10 * time.Minute)
		c.want("after that")
	})
}

// An orphan's node may be there again between the look and the removal.
func TestAnOrphanWhoseNodeIsThereAgainStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var asked atomic.Int32
		c.nodes.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "get" && asked.Add(1) == 1 { // the look asks before the node is there
				return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}
			}
			return nil
		})
		c.add(newPod("a", "n1"))
		c.start(Defaults())
		c.nodes.HoldWatches(true)
		c.add(newNode("n1", corev1.ConditionTrue))
		pass(2 * time.Minute)
		c.want("after the look found it gone", "a")
		if asked.Load() < 2 {
			t.Errorf("the server was asked %d times, want again before the removal", asked.Load())
		}
	})
}

func TestARemovalThatFailsIsTriedAgainBeforeTheNextLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var failures atomic.Int32
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "delete" || failures.Add(1) > 3 {
				return nil
			}
			return fakeapi.Unavailable(0)
		})
		c.add(newPod("a", "", deletedWith(30)))
		p := c.start(Defaults())
		pass(time.Second)
		c.want("a second later")
		if n := len(p.Writes()); n != 2 {
			t.Errorf("%d writes, want one mark and one delete: %q", n, p.Writes())
		}
	})
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"-1 workers":         {Workers: -1, Period: 1},
		"a period of 0s":     {Workers: 1},
		"a quarantine of -1": {Workers: 1, Period: 1, Quarantine: -1},
	} {
		if _, err := New(mgr, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New with %+v: %v, want an error that says %s", o, err, want)
		}
	}
}

// keeping has n Pods stay that have ended.
func keeping(n int) Options {
	o := Defaults()
	o.TerminatedPodThreshold = n
	return o
}

func TestRemovalsAreCountedByNamespaceAndReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(newNode("up", corev1.ConditionTrue), newNode("out", corev1.ConditionFalse, corev1.TaintNodeOutOfService))
		c.add(
			newPod("ended-1", "up", inPhase(corev1.PodSucceeded)), newPod("ended-2", "up", inPhase(corev1.PodSucceeded)), newPod("runs", "up"),
			newPod("orphan", "lost"), newPod("unscheduled", "", deletedWith(30)), newPod("out-of-service", "out", deletedWith(30)),
			newPod("halfway", "up", deletedWith(0)),
		)
		var refused atomic.Bool
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "delete" && q.Key.Name == "ended-1" && refused.CompareAndSwap(false, true) {
				return fakeapi.Forbidden("pods")
			}
			return nil
		})
		var metrics prometheus.Collector
		managertest.Run(t, c.config(), managertest.MakingMetrics(New, keeping(1), &metrics))
		pass(time.Hour)
		c.want("at the end", "ended-2", "runs")
		const attempts = `pod_gc_collector_force_delete_pods_total{namespace="shop",reason=%q}`
		want := map[string]float64{
			fmt.Sprintf(attempts, "terminated"):                                                    2,
			fmt.Sprintf(attempts, "orphaned"):                                                      1,
			fmt.Sprintf(attempts, "unscheduled"):                                                   1,
			fmt.Sprintf(attempts, "out-of-service"):                                                1,
			`pod_gc_collector_force_delete_pod_errors_total{namespace="shop",reason="terminated"}`: 1,
		}
		if got := managertest.Series(t, metrics); !maps.Equal(got, want) {
			t.Errorf("the series are %v, want %v", got, want)
		}
	})
}
