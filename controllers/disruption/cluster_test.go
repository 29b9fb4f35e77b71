// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// newReady creates a Pod and says that it is ready, as its kubelet would.
func newReady(t *testing.T, c *client.Client, namespace, name string, owners ...metav1.OwnerReference) {
	t.Helper()
	pods := client.For[*corev1.Pod](c)
	p := pod(name, true)
	status := p.Status
	p.Namespace, p.Status, p.OwnerReferences = namespace, corev1.PodStatus{}, owners
	// A Pod without a node is deleted at once.
	p.Spec = corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "main", Image: "web"}}}
	made, err := pods.Create(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	made.Status = status
	if _, err := pods.UpdateStatus(t.Context(), made); err != nil {
		t.Fatal(err)
	}
}

// owned creates a ReplicaSet of a size, and returns the reference that its Pods have to it. No controller acts on it.
func owned(t *testing.T, c *client.Client, namespace string, replicas int32) metav1.OwnerReference {
	t.Helper()
	labels := map[string]string{"app": "web"}
	made, err := client.For[*appsv1.ReplicaSet](c).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web"}}},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: made.Name, UID: made.UID, Controller: new(true)}
}

// TestAThousandEvictionsAtOnceLeaveAsManyPodsAsTheBudgetWants is with the eviction of the real API
// server, and with the rights that the controller declares.
func TestAThousandEvictionsAtOnceLeaveAsManyPodsAsTheBudgetWants(t *testing.T) {
	const pods, least, evictions = 40, 25, 1000
	cluster := shared.Get(t)
	for _, test := range []struct {
		name  string
		spec  func(*policyv1.PodDisruptionBudgetSpec)
		owned bool
	}{
		{"a number of Pods", func(s *policyv1.PodDisruptionBudgetSpec) { s.MinAvailable = new(intstr.FromInt32(least)) }, false},
		{"a share of what their owner wants", func(s *policyv1.PodDisruptionBudgetSpec) {
			s.MaxUnavailable = new(intstr.FromString("37%")) // of 40, rounded up: 15
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			namespace := cluster.Namespace(t)
			p := managertest.Run(t, cluster.Restricted(t, Rights()), managertest.Making(New, Options{Workers: 4}))
			pdb := budget(intstr.FromInt32(0))
			pdb.Namespace, pdb.Generation, pdb.Spec.MinAvailable = namespace, 0, nil
			test.spec(&pdb.Spec)
			if _, err := client.For[*policyv1.PodDisruptionBudget](cluster.Client).Create(t.Context(), pdb); err != nil {
				t.Fatal(err)
			}
			var owners []metav1.OwnerReference
			if test.owned {
				owners = append(owners, owned(t, cluster.Client, namespace, pods))
			}
			for i := range pods {
				newReady(t, cluster.Client, namespace, fmt.Sprint("p", i), owners...)
			}
			key := object.Key{Namespace: namespace, Name: "web"}
			controlplanetest.Await(t, p, key, "all Pods count", func(pdb *policyv1.PodDisruptionBudget) bool {
				return pdb.Status.DisruptionsAllowed == pods-least && pdb.Status.CurrentHealthy == pods && pdb.Status.ObservedGeneration == pdb.Generation
			})
			healthy := countHealthy(t, cluster, namespace, pods)

			// Each eviction has a goroutine, and none is sent before all goroutines have started. A client has only so many
			// requests with the server at a time, so there are several.
			var send [20]func(name string) error
			for i := range send {
				c, err := client.New(cluster.Config)
				if err != nil {
					t.Fatal(err)
				}
				evict := client.Sub[*policyv1.Eviction](client.For[*corev1.Pod](c), "eviction")
				send[i] = func(name string) error {
					_, err := evict.Create(t.Context(), object.Key{Namespace: namespace, Name: name},
						&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, client.NoRetries())
					return err
				}
			}
			var done, refused atomic.Int32
			note := func(name string, err error) {
				switch {
				case err == nil:
					done.Add(1)
				case apierrors.IsTooManyRequests(err), apierrors.IsNotFound(err), apierrors.IsConflict(err), client.Unanswered(err):
					refused.Add(1)
				default:
					t.Errorf("evicting %s: %v", name, err)
				}
			}
			start := make(chan struct{})
			var ready, wg sync.WaitGroup
			ready.Add(evictions)
			for i := range evictions {
				name, send := fmt.Sprint("p", i*7%pods), send[i%len(send)]
				wg.Go(func() {
					ready.Done()
					<-start
					note(name, send(name))
				})
			}
			ready.Wait()
			close(start)
			wg.Wait()
			t.Logf("of those that were sent at once, %d were allowed and %d refused", done.Load(), refused.Load())

			// Two evictions of one Pod may both have used the budget up, and only one of them has deleted a Pod. When the
			// controller has counted again, there is something left for those that ask once more.
			controlplanetest.Eventually(t, "the budget is used up", func() bool {
				for i := range pods {
					name := fmt.Sprint("p", i)
					note(name, send[0](name))
				}
				pdb, err := client.For[*policyv1.PodDisruptionBudget](cluster.Client).Get(t.Context(), key)
				if err != nil {
					return false
				}
				// A server that is busy may give an eviction up after it was allowed, and before the Pod is deleted. It counts for two minutes
				// then, in which nothing asks again.
				for name := range pdb.Status.DisruptedPods {
					err := client.For[*corev1.Pod](cluster.Client).Delete(t.Context(), object.Key{Namespace: namespace, Name: name})
					if err != nil && !apierrors.IsNotFound(err) {
						t.Error(err)
					}
				}
				return pdb.Status.CurrentHealthy == least && pdb.Status.DisruptionsAllowed == 0 && len(pdb.Status.DisruptedPods) == 0
			})
			controlplanetest.Eventually(t, "as many Pods are left as the budget wants", func() bool {
				is, _ := healthy()
				return is == least
			})
			if _, fewest := healthy(); fewest < least {
				t.Errorf("%d Pods were healthy at one time, and the budget wants %d", fewest, least)
			}
		})
	}
}

// countHealthy counts the Pods that are ready and are not being deleted, at every step of theirs as the server made it. The
// result returns how many there are, and how many there were at least.
func countHealthy(t *testing.T, cluster *controlplanetest.Cluster, namespace string, all int) func() (is, fewest int) {
	t.Helper()
	healthy := map[object.Key]bool{}
	var mu sync.Mutex
	fewest := all
	watched := cache.Informer[*corev1.Pod](managertest.Run(t, cluster.Config), cache.InNamespace(namespace))
	if _, err := watched.AddHandler(func(e cache.Event[*corev1.Pod]) {
		mu.Lock()
		defer mu.Unlock()
		delete(healthy, e.Key())
		if o, err := e.Item().Object(); err == nil && e.Kind != cache.Deleted && o.DeletionTimestamp == nil && podstate.Ready(o) {
			healthy[e.Key()] = true
		}
		if !e.Initial {
			fewest = min(fewest, len(healthy))
		}
	}, cache.HandlerOptions{Name: t.Name(), EveryStep: true}); err != nil {
		t.Fatal(err)
	}
	if err := watched.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func() (int, int) {
		mu.Lock()
		defer mu.Unlock()
		return len(healthy), fewest
	}
}
