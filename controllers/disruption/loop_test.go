// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server with budgets, Pods and their controllers, inside of a bubble of synctest.
type cluster struct {
	t             *testing.T
	api           *fakeapi.Server
	budgets, pods *fakeapi.Resource
	deployments   *fakeapi.Resource
	sets          *fakeapi.Resource
	others        map[string]*fakeapi.Resource // by plural
	client        *client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	api := fakeapi.New()
	apps := func(plural, kind string) *fakeapi.Resource {
		return api.Serve(object.Resource{Group: "apps", Version: "v1", Plural: plural, Kind: kind, Namespaced: true}, fakeapi.WithStatus())
	}
	c := &cluster{
		t: t, api: api,
		budgets:     api.Serve(kind, fakeapi.WithStatus()),
		pods:        api.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}, fakeapi.WithStatus()),
		deployments: apps("deployments", "Deployment"),
		sets:        apps("replicasets", "ReplicaSet"),
	}
	c.others = map[string]*fakeapi.Resource{
		"statefulsets":           apps("statefulsets", "StatefulSet"),
		"replicationcontrollers": api.Serve(object.Resource{Version: "v1", Plural: "replicationcontrollers", Kind: "ReplicationController", Namespaced: true}),
	}
	api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
	var err error
	if c.client, err = client.New(api.Config()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) start() {
	c.t.Helper()
	managertest.Run(c.t, c.api.Config(), managertest.Making(New, Defaults()))
	synctest.Wait()
}

// add puts objects on the server, as they are.
func (c *cluster) add(objects ...object.Object) {
	c.t.Helper()
	for _, o := range objects {
		resource := map[string]*fakeapi.Resource{
			"*v1.PodDisruptionBudget": c.budgets, "*v1.Pod": c.pods, "*v1.Deployment": c.deployments, "*v1.ReplicaSet": c.sets,
		}[fmt.Sprintf("%T", o)]
		if err := resource.Put(o); err != nil {
			c.t.Fatal(err)
		}
	}
	synctest.Wait()
}

func (c *cluster) budget(name string) *policyv1.PodDisruptionBudget {
	c.t.Helper()
	pdb, err := fakeapi.Read[*policyv1.PodDisruptionBudget](c.budgets, object.Key{Namespace: "shop", Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	return pdb
}

// want compares the numbers of a budget: healthy, desired, expected, allowed.
func (c *cluster) want(when string, numbers ...int32) {
	c.t.Helper()
	s := c.budget("web").Status
	if got := []int32{s.CurrentHealthy, s.DesiredHealthy, s.ExpectedPods, s.DisruptionsAllowed}; !slices.Equal(got, numbers) {
		c.t.Fatalf("%s, healthy, desired, expected and allowed are %v, want %v; conditions %v", when, got, numbers, s.Conditions)
	}
}

// notes returns what the Events of a reason say.
func (c *cluster) notes(reason string) (all []string) {
	c.t.Helper()
	time.Sleep(time.Minute)
	synctest.Wait()
	events, _, err := client.For[*eventsv1.Event](c.client).List(c.t.Context(), client.Selection{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range events {
		if e.Reason == reason {
			all = append(all, e.Note)
		}
	}
	return all
}

// deployment returns a Deployment of a size, its ReplicaSet and its Pods, all ready.
func deployment(name string, replicas int32) []object.Object {
	controlled := func(kind, by string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: by, UID: types.UID(by), Controller: new(true)}}
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	all := []object.Object{
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Generation: 1},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Template: template},
		},
		&appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-1", UID: types.UID(name + "-1"), OwnerReferences: controlled("Deployment", name), Generation: 1},
			Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Template: template}, // its own size does not count
		},
	}
	for i := range replicas {
		p := pod(fmt.Sprintf("%s-1-%d", name, i), true)
		p.OwnerReferences = controlled("ReplicaSet", name+"-1")
		all = append(all, p)
	}
	return all
}

func TestABudgetFollowsItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(budget(intstr.FromInt32(2)))
		c.start()
		c.want("without Pods", 0, 2, 0, 0)
		c.add(pod("a", true), pod("b", true), pod("c", true))
		c.want("with three Pods", 3, 2, 3, 1)
		c.add(pod("a", false))
		c.want("with one that is not ready", 2, 2, 3, 0)
		other := pod("b", true)
		other.Labels = map[string]string{"app": "other"}
		c.add(other)
		c.want("with one that has other labels", 1, 2, 2, 0)
		c.pods.Remove(object.Key{Namespace: "shop", Name: "c"})
		synctest.Wait()
		c.want("with one that is gone", 0, 2, 1, 0)
	})
}

func TestAPercentageIsOfTheDeploymentAndFollowsItsSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(budget(intstr.FromString("75%")))
		c.add(deployment("web", 4)...)
		c.start()
		c.want("of four", 4, 3, 4, 1)
		bigger := deployment("web", 8)[0]
		bigger.SetGeneration(2)
		c.add(bigger) // before any of its new Pods is there
		c.want("of eight, with four Pods", 4, 6, 8, 0)
	})
}

func TestPodsWithoutAControllerAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(budget(intstr.FromString("50%")), pod("a", true), pod("b", true))
		c.start()
		c.want("without controllers", 2, 0, 0, 0)
		if notes := c.notes("UnmanagedPods"); len(notes) != 1 || !strings.Contains(notes[0], "unmanaged: a, b.") {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestAnOwnerWithoutAScaleAllowsNothingAndSaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		jobs := object.Resource{Group: "batch", Version: "v1", Plural: "jobs", Kind: "Job", Namespaced: true}
		c.api.Serve(jobs).Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Subresource == "scale" {
				return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource"}
			}
			return nil
		})
		p := pod("a", true)
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "import", UID: "import", Controller: new(true)}}
		c.add(budget(intstr.FromString("50%")), p)
		c.start()
		condition := meta.FindStatusCondition(c.budget("web").Status.Conditions, policyv1.DisruptionAllowedCondition)
		if condition == nil || condition.Reason != policyv1.SyncFailedReason ||
			!strings.Contains(condition.Message, "Pod a wants: its controller is the Job import, and jobs.batch does not implement the scale subresource: set minAvailable to a number") {
			t.Fatalf("the condition is %v", condition)
		}
		fixed := c.budget("web")
		fixed.Spec.MinAvailable = new(intstr.FromInt32(0))
		if _, err := client.For[*policyv1.PodDisruptionBudget](c.client).Update(t.Context(), fixed); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.want("with a number", 1, 0, 1, 1)
	})
}

func TestAPodOfSeveralBudgetsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		second := budget(intstr.FromInt32(1))
		second.Name = "all"
		second.Spec.Selector = &metav1.LabelSelector{}
		c.add(budget(intstr.FromInt32(0)), second)
		c.start()
		c.add(pod("a", true))
		if notes := c.notes("MultiplePodDisruptionBudgets"); len(notes) != 1 || notes[0] != "Pod shop/a matches multiple PodDisruptionBudgets: all, web. The API server does not evict such a Pod." {
			t.Errorf("the Events say %q", notes)
		}
		c.want("one of them", 1, 0, 1, 1)
	})
}

func TestAPodOfABudgetThatGetsASecondOneIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(budget(intstr.FromInt32(0)), pod("a", true))
		c.start()
		if notes := c.notes("MultiplePodDisruptionBudgets"); len(notes) != 0 {
			t.Errorf("with one budget the Events say %q", notes)
		}
		second := budget(intstr.FromInt32(1))
		second.Name = "all"
		second.Spec.Selector = &metav1.LabelSelector{}
		c.add(second)
		if notes := c.notes("MultiplePodDisruptionBudgets"); len(notes) != 1 {
			t.Errorf("with two budgets the Events say %q", notes)
		}
	})
}

func TestAnEvictionThatDeletedNothingCountsForTwoMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(budget(intstr.FromInt32(1)), pod("a", true), pod("b", true))
		c.start()
		c.want("before", 2, 1, 2, 1)
		evicted := c.budget("web")
		evicted.Status.DisruptionsAllowed, evicted.Status.DisruptedPods = 0, map[string]metav1.Time{"a": metav1.Now()}
		if _, err := client.For[*policyv1.PodDisruptionBudget](c.client).UpdateStatus(t.Context(), evicted); err != nil {
			t.Fatal(err)
		}
		time.Sleep(deletionTimeout - time.Second)
		synctest.Wait()
		c.want("for two minutes", 1, 1, 2, 0)
		if len(c.budget("web").Status.DisruptedPods) != 1 {
			t.Errorf("the status forgot the eviction: %v", c.budget("web").Status)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		c.want("afterwards", 2, 1, 2, 1)
		if notes := c.notes("NotDeleted"); len(notes) != 1 || notes[0] != "Pod was expected by PDB shop/web to be deleted but it wasn't" {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestAPodThatWasNotDisruptedLosesTheCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		disrupted := func(name, reason string) *corev1.Pod {
			p := pod(name, true)
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now(),
			})
			return p
		}
		c.add(disrupted("a", "EvictionByEvictionAPI"), disrupted("b", corev1.PodReasonTerminationByKubelet))
		c.start()
		status := func(name string) corev1.ConditionStatus {
			p, err := client.For[*corev1.Pod](c.client).Get(t.Context(), object.Key{Namespace: "shop", Name: name})
			if err != nil || len(p.Status.Conditions) != 2 {
				t.Fatalf("the Pod is %v, %v", p, err)
			}
			return p.Status.Conditions[1].Status
		}
		time.Sleep(staleTimeout - 2*time.Second)
		synctest.Wait()
		if status("a") != corev1.ConditionTrue {
			t.Error("the condition went too early")
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if status("a") != corev1.ConditionFalse || status("b") != corev1.ConditionTrue {
			t.Errorf("the conditions are %s and %s, want that of a False, and the kubelet's True", status("a"), status("b"))
		}
	})
}

func TestAConflictIsNeverAnsweredWithOldNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(budget(intstr.FromInt32(1)), pod("a", true), pod("b", true), pod("c", false))
		c.start()
		c.want("before", 2, 1, 3, 1)
		c.budgets.HoldWatches(true) // the cache does not see what the API server writes
		evicted := c.budget("web")
		evicted.Status.DisruptionsAllowed, evicted.Status.DisruptedPods = 0, map[string]metav1.Time{"a": metav1.Now()}
		if _, err := client.For[*policyv1.PodDisruptionBudget](c.client).UpdateStatus(t.Context(), evicted); err != nil {
			t.Fatal(err)
		}
		c.add(pod("c", true)) // a reason to count, on a state without the eviction
		time.Sleep(time.Second)
		synctest.Wait()
		if s := c.budget("web").Status; s.DisruptionsAllowed != 0 || len(s.DisruptedPods) != 1 {
			t.Fatalf("the eviction was written over: %+v", s)
		}
		c.budgets.HoldWatches(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		c.want("with both", 2, 1, 3, 1)
	})
}

// TestNeverMorePodsAreDisruptedThanTheBudgetAllows has clients that evict as the API server does,
// Pods that come back and get ready late, and watches that lag.
func TestNeverMorePodsAreDisruptedThanTheBudgetAllows(t *testing.T) {
	const pods, least = 8, 5
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			c := newCluster(t)
			c.add(budget(intstr.FromInt32(least)))
			for i := range pods {
				c.add(pod(fmt.Sprint("p", i), true))
			}
			c.start()
			c.api.LagWatches(func() time.Duration { return time.Duration(random.IntN(300)) * time.Millisecond })
			budgets := client.For[*policyv1.PodDisruptionBudget](c.client)
			healthy := func() (names []string) {
				list, err := fakeapi.Objects[*corev1.Pod](c.pods)
				if err != nil {
					t.Error(err)
				}
				for _, p := range list {
					if p.Status.Conditions[0].Status == corev1.ConditionTrue {
						names = append(names, p.Name)
					}
				}
				return names
			}
			var mu sync.Mutex
			evictions := 0
			var wg sync.WaitGroup
			for client := range 3 {
				waits := rand.New(rand.NewPCG(seed, uint64(client)+10))
				wg.Go(func() {
					for range 60 {
						time.Sleep(time.Duration(waits.IntN(400)) * time.Millisecond)
						mu.Lock()
						// The API server's eviction: count down, then delete.
						now := healthy()
						pdb := c.budget("web")
						if len(now) == 0 || pdb.Status.DisruptionsAllowed <= 0 || pdb.Status.ObservedGeneration < pdb.Generation {
							mu.Unlock()
							continue
						}
						victim := now[waits.IntN(len(now))]
						if _, again := pdb.Status.DisruptedPods[victim]; again {
							mu.Unlock()
							continue
						}
						pdb.Status.DisruptionsAllowed--
						if pdb.Status.DisruptedPods == nil {
							pdb.Status.DisruptedPods = map[string]metav1.Time{}
						}
						pdb.Status.DisruptedPods[victim] = metav1.Now()
						_, err := budgets.UpdateStatus(t.Context(), pdb)
						mu.Unlock()
						if err != nil {
							continue // somebody else has written it
						}
						time.Sleep(time.Duration(waits.IntN(50)) * time.Millisecond)
						mu.Lock()
						c.pods.Remove(object.Key{Namespace: "shop", Name: victim})
						evictions++
						if left := len(healthy()); left < least {
							t.Errorf("after eviction %d of %s, %d Pods are healthy, and the budget wants %d", evictions, victim, left, least)
						}
						if err := c.pods.Put(pod(victim+"x", false)); err != nil {
							t.Error(err)
						}
						mu.Unlock()
						wait := time.Duration(waits.IntN(2000)) * time.Millisecond
						wg.Go(func() {
							time.Sleep(wait)
							mu.Lock()
							defer mu.Unlock()
							if c.pods.Get(object.Key{Namespace: "shop", Name: victim + "x"}) == nil {
								return
							}
							if err := c.pods.Put(pod(victim+"x", true)); err != nil {
								t.Error(err)
							}
						})
					}
				})
			}
			wg.Wait()
			if evictions < 20 {
				t.Errorf("%d Pods were evicted; the test wants more", evictions)
			}
		})
	}
}

func TestTheSizesOfAllControllersOfPodsCountOnceEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		pdb := budget(intstr.FromInt32(0))
		pdb.Spec.MinAvailable, pdb.Spec.MaxUnavailable = nil, new(intstr.FromString("30%"))
		c.add(pdb)
		controlled := func(name, apiVersion, kind, by string) {
			p := pod(name, true)
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: by, UID: types.UID(by), Controller: new(true)}}
			c.add(p)
		}
		named := func(name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Generation: 1}
		}
		c.add(&appsv1.ReplicaSet{ObjectMeta: named("alone"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(1))}})
		for resource, o := range map[string]object.Object{
			"statefulsets":           &appsv1.StatefulSet{ObjectMeta: named("db"), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}},
			"replicationcontrollers": &corev1.ReplicationController{ObjectMeta: named("old"), Spec: corev1.ReplicationControllerSpec{Replicas: new(int32(2))}},
		} {
			if err := c.others[resource].Put(o); err != nil {
				t.Fatal(err)
			}
		}
		c.add(deployment("web", 4)...)
		controlled("alone-a", "apps/v1", "ReplicaSet", "alone")
		for i := range 3 {
			controlled(fmt.Sprint("db-", i), "apps/v1", "StatefulSet", "db")
		}
		controlled("old-a", "v1", "ReplicationController", "old")
		controlled("old-b", "v1", "ReplicationController", "old")
		c.start()
		// 30 % of 4 + 1 + 3 + 2 is 3.
		c.want("with four controllers", 10, 7, 10, 3)
	})
}
