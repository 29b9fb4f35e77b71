// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

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

// TestAThousandEvictionsAtOnceLeaveAsManyPodsAsTheBudgetWants is with the eviction of the real API
// server, and with the rights that the controller declares.
func TestAThousandEvictionsAtOnceLeaveAsManyPodsAsTheBudgetWants(t *testing.T) {
	const pods, least, evictions, clients = 40, 25, 1000, 50
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	p := managertest.Run(t, cluster.Restricted(t, Rights()), managertest.Making(New, Options{Workers: 4}))
	pdb := budget(intstr.FromInt32(least))
	pdb.Namespace, pdb.Generation = namespace, 0
	if _, err := client.For[*policyv1.PodDisruptionBudget](cluster.Client).Create(t.Context(), pdb); err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		newReady(t, cluster.Client, namespace, fmt.Sprint("p", i))
	}
	key := object.Key{Namespace: namespace, Name: "web"}
	controlplanetest.Await(t, p, key, "all Pods count", func(pdb *policyv1.PodDisruptionBudget) bool {
		return pdb.Status.DisruptionsAllowed == pods-least && pdb.Status.ObservedGeneration == pdb.Generation
	})

	// Every step of the Pods is counted, as the server made it.
	healthy := map[object.Key]bool{}
	var mu sync.Mutex
	fewest := pods
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

	evict := client.Sub[*policyv1.Eviction](client.For[*corev1.Pod](cluster.Client), "eviction")
	var done, refused atomic.Int32
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range evictions / clients {
				name := fmt.Sprint("p", (c*7+i*3)%pods)
				_, err := evict.Create(t.Context(), object.Key{Namespace: namespace, Name: name},
					&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
				switch {
				case err == nil:
					done.Add(1)
				case apierrors.IsTooManyRequests(err), apierrors.IsNotFound(err), apierrors.IsConflict(err), client.Unanswered(err):
					refused.Add(1)
				default:
					t.Errorf("evicting %s: %v", name, err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d evictions were allowed, %d refused", done.Load(), refused.Load())
	controlplanetest.Await(t, p, key, "the budget is used up", func(pdb *policyv1.PodDisruptionBudget) bool {
		return pdb.Status.CurrentHealthy == least && pdb.Status.DisruptionsAllowed == 0 && len(pdb.Status.DisruptedPods) == 0
	})
	mu.Lock()
	defer mu.Unlock()
	if fewest < least {
		t.Errorf("%d Pods were healthy at one time, and the budget wants %d", fewest, least)
	}
}
