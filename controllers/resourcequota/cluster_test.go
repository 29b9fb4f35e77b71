// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// scene is a namespace of a real cluster with the controller, which has the rights that it
// declares.
type scene struct {
	*controlplanetest.Cluster
	t         *testing.T
	namespace string
	provider  cache.Provider
}

// TestWithAdmission has the scenes in which admission takes part. They share the controller.
func TestWithAdmission(t *testing.T) {
	cluster := shared.Get(t)
	// Admission charges requests that it refuses in the end, if it has two quotas to write and one of
	// them changes all the time. The scenes do not wait 40 s for that.
	quick := func(h controller.Host, o Options) (controller.Runnable, error) {
		made, err := New(h, o)
		if r, ok := made.(*resourceQuotas); ok {
			r.books.longest = 5 * time.Second
		}
		return made, err
	}
	p := managertest.Run(t, cluster.Restricted(t, Rights()), managertest.Making(quick, Defaults()))
	t.Run("scenes", func(t *testing.T) {
		for name, play := range map[string]func(*scene){
			"two quotas under 200 concurrent creations":                   playConcurrentCreations,
			"a custom kind comes, cannot be listed and goes":              playCustomKind,
			"what a quota refuses is accepted after a deletion":           playBlockedAndFreed,
			"the sums of all kinds are those that admission goes on with": playAllKinds,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(&scene{Cluster: cluster, t: t, namespace: cluster.Namespace(t), provider: p})
			})
		}
	})
}

func (s *scene) key(name string) object.Key { return object.Key{Namespace: s.namespace, Name: name} }

// limit creates a quota, and waits until it is counted.
func (s *scene) limit(name string, limits ...string) {
	s.t.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard(limits...)}}
	if _, err := client.For[*corev1.ResourceQuota](s.Client).Create(s.t.Context(), q); err != nil {
		s.t.Fatal(err)
	}
	s.await(name, "is counted", func(q *corev1.ResourceQuota) bool { return !isUncounted(q) })
}

// await waits until a quota is as a test wants it.
func (s *scene) await(name, what string, holds func(*corev1.ResourceQuota) bool) {
	s.t.Helper()
	last := ""
	controlplanetest.Eventually(s.t, "ResourceQuota "+name+" "+what, func() bool {
		q, err := client.For[*corev1.ResourceQuota](s.Client).Get(s.t.Context(), s.key(name))
		if err != nil {
			s.t.Fatal(err)
		}
		if now := text(q.Status.Used); now != last {
			last = now
			s.t.Logf("%s: used %s of %s", name, now, text(q.Status.Hard))
		}
		return holds(q)
	})
}

func (s *scene) awaitUsed(name, used string) {
	s.t.Helper()
	s.await(name, "has used "+used, func(q *corev1.ResourceQuota) bool { return text(q.Status.Used) == used })
}

func (s *scene) configMap(name string) error {
	_, err := client.For[*corev1.ConfigMap](s.Client).Create(s.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}})
	return err
}

func (s *scene) deleteConfigMap(name string) error {
	return client.For[*corev1.ConfigMap](s.Client).Delete(s.t.Context(), s.key(name))
}

// Clients create and delete while the controller writes. There are never more objects than the
// smaller quota allows, at any resourceVersion, and in the end both quotas have their number.
func playConcurrentCreations(s *scene) {
	const clients, most = 200, 40
	s.limit("small", fmt.Sprintf("count/configmaps=%d", most))
	s.limit("large", fmt.Sprintf("configmaps=%d", most+20))

	there := map[object.Key]bool{}
	var mu sync.Mutex
	highest := 0
	watched := cache.Informer[*corev1.ConfigMap](managertest.Run(s.t, s.Config), cache.InNamespace(s.namespace))
	if _, err := watched.AddHandler(func(e cache.Event[*corev1.ConfigMap]) {
		mu.Lock()
		defer mu.Unlock()
		if there[e.Key()] = e.Kind != cache.Deleted; !there[e.Key()] {
			delete(there, e.Key())
		}
		highest = max(highest, len(there))
	}, cache.HandlerOptions{Name: s.t.Name(), EveryStep: true}); err != nil {
		s.t.Fatal(err)
	}
	if err := watched.WaitForSync(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}

	var made, refused atomic.Int32
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			name := fmt.Sprint("c-", c)
			controlplanetest.Eventually(s.t, name+" has its turn", func() bool {
				switch err := s.configMap(name); {
				case err == nil:
					made.Add(1)
					return true
				case apierrors.IsForbidden(err), apierrors.IsConflict(err), apierrors.IsTooManyRequests(err), client.Unanswered(err):
					refused.Add(1)
					return false
				case apierrors.IsAlreadyExists(err): // the answer of an earlier try was lost
					return true
				default:
					s.t.Errorf("creating %s: %v", name, err)
					return true
				}
			})
			if c%20 == 0 {
				return
			}
			if err := s.deleteConfigMap(name); err != nil && !apierrors.IsNotFound(err) {
				s.t.Errorf("deleting %s: %v", name, err)
			}
		})
	}
	wg.Wait()
	all, _, err := client.For[*corev1.ConfigMap](s.Client).List(s.t.Context(), client.Selection{Namespace: s.namespace})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("%d creations were allowed, %d refused, %d objects are left", made.Load(), refused.Load(), len(all))
	s.awaitUsed("small", fmt.Sprintf("count/configmaps=%d", len(all)))
	s.awaitUsed("large", fmt.Sprintf("configmaps=%d", len(all)))
	mu.Lock()
	defer mu.Unlock()
	if highest > most {
		s.t.Errorf("there were %d objects at one time, and the quota allows %d", highest, most)
	}
}

func playBlockedAndFreed(s *scene) {
	s.limit("small", "count/configmaps=1", "services=0")
	if err := s.configMap("one"); err != nil {
		s.t.Fatal(err)
	}
	if err := s.configMap("two"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: small") {
		s.t.Fatalf("a creation beyond the quota: %v", err)
	}
	if err := s.deleteConfigMap("one"); err != nil {
		s.t.Fatal(err)
	}
	controlplanetest.Eventually(s.t, "the deletion makes room", func() bool { return s.configMap("two") == nil })
	s.awaitUsed("small", "count/configmaps=1 services=0")
}

// playCustomKind has a kind that is defined after the quota, that cannot be listed for a while, and
// that goes. A resource of another kind in the same quota follows its objects all the time.
func playCustomKind(s *scene) {
	kind := object.Resource{Group: "quota.example.org", Version: "v1", Plural: "gadgets", Kind: "Gadget", Namespaced: true}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "mixed"}, Spec: corev1.ResourceQuotaSpec{Hard: hard("count/gadgets.quota.example.org=2", "configmaps=5")}}
	if _, err := client.For[*corev1.ResourceQuota](s.Client).Create(s.t.Context(), q); err != nil {
		s.t.Fatal(err)
	}
	s.awaitUsed("mixed", "configmaps=0")
	s.note("mixed", "the server does not serve gadgets.quota.example.org")

	s.Define(s.t, kind)
	s.awaitUsed("mixed", "configmaps=0 count/gadgets.quota.example.org=0")
	gadgets := client.ForResource[*unstructured.Unstructured](s.Client, kind)
	for _, name := range []string{"one", "two"} {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": s.namespace, "name": name}}}
		o.SetGroupVersionKind(kind.GroupVersionKind())
		controlplanetest.Eventually(s.t, "gadget "+name+" is accepted", func() bool { _, err := gadgets.Create(s.t.Context(), o); return err == nil })
	}
	s.awaitUsed("mixed", "configmaps=0 count/gadgets.quota.example.org=2")
	if err := gadgets.Delete(s.t.Context(), s.key("one")); err != nil {
		s.t.Fatal(err)
	}
	s.awaitUsed("mixed", "configmaps=0 count/gadgets.quota.example.org=1")

	// What is stored in version v1 cannot be read in version v2 without the webhook.
	s.redefine(kind, map[string]any{
		"versions": controlplanetest.CustomVersions("v1", "v2"),
		"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []string{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/convert"},
		}},
	})
	s.note("mixed", "conversion webhook")
	if err := s.configMap("while-it-is-broken"); err != nil {
		s.t.Fatal(err)
	}
	s.awaitUsed("mixed", "configmaps=1 count/gadgets.quota.example.org=1")
	if err := s.deleteConfigMap("while-it-is-broken"); err != nil {
		s.t.Fatal(err)
	}
	s.awaitUsed("mixed", "configmaps=0 count/gadgets.quota.example.org=1")

	s.redefine(kind, map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}})
	controlplanetest.Eventually(s.t, "the server needs no webhook any more", func() bool {
		return gadgets.Delete(s.t.Context(), s.key("two")) == nil
	})
	s.awaitUsed("mixed", "configmaps=0 count/gadgets.quota.example.org=0")

	// The kind goes, and the quota goes on with the other one.
	three := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": s.namespace, "name": "three"}}}
	three.SetGroupVersionKind(kind.GroupVersionKind())
	if _, err := gadgets.Create(s.t.Context(), three); err != nil {
		s.t.Fatal(err)
	}
	s.awaitUsed("mixed", "configmaps=0 count/gadgets.quota.example.org=1")
	s.Undefine(s.t, kind)
	s.awaitUsed("mixed", "configmaps=0 count/gadgets.quota.example.org=0")
	if err := s.configMap("after-it"); err != nil {
		s.t.Fatal(err)
	}
	s.awaitUsed("mixed", "configmaps=1 count/gadgets.quota.example.org=0")
}

// redefine changes the definition of a custom kind.
func (s *scene) redefine(r object.Resource, spec map[string]any) {
	s.t.Helper()
	patch, err := client.MergePatch(map[string]any{"spec": spec})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := client.ForResource[*metav1.PartialObjectMetadata](s.Client, controlplanetest.Definitions).Patch(s.t.Context(), object.Key{Name: r.String()}, patch); err != nil {
		s.t.Fatal(err)
	}
}

// note waits for an Event about a quota that says something.
func (s *scene) note(quota, what string) {
	s.t.Helper()
	controlplanetest.Eventually(s.t, "an Event of "+quota+" says "+what, func() bool {
		all, _, err := client.For[*eventsv1.Event](s.Client).List(s.t.Context(), client.Selection{Namespace: s.namespace})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range all {
			if e.Regarding.Name == quota && e.Reason == eventNotCounted && strings.Contains(e.Note, what) {
				return true
			}
		}
		return false
	})
}

// playAllKinds creates one object of each kind that counts for more than its number. What
// admission has added for each is what the controller counts, so that no write follows.
func playAllKinds(s *scene) {
	s.limit("all", "pods=5", "requests.cpu=5", "limits.memory=5Gi", "services=5", "services.nodeports=5", "services.loadbalancers=5",
		"persistentvolumeclaims=5", "requests.storage=5Gi", "gold.storageclass.storage.k8s.io/requests.storage=5Gi",
		"count/resourceclaims.resource.k8s.io=5", "gpu.deviceclass.resource.k8s.io/devices=5", "requests.example.com/gpu=5")
	s.apply(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"schedulerName": "none", "containers": [{"name": "web", "image": "web",
		"resources": {"requests": {"cpu": "500m", "memory": "1Gi", "example.com/gpu": 2}, "limits": {"memory": "1Gi", "example.com/gpu": 2}}}]}}`)
	s.apply(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"type": "LoadBalancer", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}}`)
	s.apply(`{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {"storageClassName": "gold", "accessModes": ["ReadWriteOnce"],
		"resources": {"requests": {"storage": "2Gi"}}}}`)
	s.apply(`{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "dev"}, "spec": {"devices": {"requests": [{"name": "a",
		"exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3}}]}}}`)
	const used = "count/resourceclaims.resource.k8s.io=1 gold.storageclass.storage.k8s.io/requests.storage=2Gi gpu.deviceclass.resource.k8s.io/devices=3 " +
		"limits.memory=1Gi persistentvolumeclaims=1 pods=1 requests.cpu=500m requests.example.com/gpu=2 requests.storage=2Gi services=1 services.loadbalancers=1 services.nodeports=2"
	s.awaitUsed("all", used)
	for _, what := range []string{"pod/web", "service/web", "resourceclaim/dev", "persistentvolumeclaim/data"} {
		if _, err := s.Kubectl("delete", what, "--namespace", s.namespace, "--grace-period=0", "--force", "--wait=false"); err != nil {
			s.t.Fatal(err)
		}
	}
	// No controller takes the finalizer of the claim away.
	if _, err := s.Kubectl("patch", "persistentvolumeclaim/data", "--namespace", s.namespace, "--type=merge", "--patch", `{"metadata": {"finalizers": null}}`); err != nil && !strings.Contains(err.Error(), "not found") {
		s.t.Fatal(err)
	}
	s.await("all", "is empty", func(q *corev1.ResourceQuota) bool {
		for _, q := range q.Status.Used {
			if !q.IsZero() {
				return false
			}
		}
		return true
	})
}

func (s *scene) apply(manifest string) {
	s.t.Helper()
	file := s.t.TempDir() + "/manifest.json"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.Kubectl("create", "--namespace", s.namespace, "--filename", file); err != nil {
		s.t.Fatal(err)
	}
}
