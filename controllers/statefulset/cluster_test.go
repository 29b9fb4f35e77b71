// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{Options: controlplanetest.Options{Nodes: 2}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// scene is a namespace of a real server with one StatefulSet.
type scene struct {
	t    *testing.T
	sets client.Typed[*appsv1.StatefulSet]
	pods client.Typed[*corev1.Pod]
	key  object.Key
}

// newScene creates a StatefulSet as a user does.
func newScene(t *testing.T, set *appsv1.StatefulSet) *scene {
	t.Helper()
	cluster := shared.Get(t)
	s := &scene{
		t: t, sets: client.For[*appsv1.StatefulSet](cluster.Client), pods: client.For[*corev1.Pod](cluster.Client),
		key: object.Key{Namespace: cluster.Namespace(t), Name: "web"},
	}
	set.Namespace, set.UID, set.Generation, set.Spec.Template.Spec.TerminationGracePeriodSeconds = s.key.Namespace, "", 0, new(int64(1))
	if _, err := s.sets.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) set() *appsv1.StatefulSet {
	s.t.Helper()
	set, err := s.sets.Get(s.t.Context(), s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	return set
}

// change changes the StatefulSet as a user does.
func (s *scene) change(patch map[string]any) {
	s.t.Helper()
	p, err := client.MergePatch(map[string]any{"spec": patch})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.sets.Patch(s.t.Context(), s.key, p); err != nil {
		s.t.Fatal(err)
	}
}

// withImage is the change to another image.
func withImage(name string) map[string]any {
	return map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []map[string]any{{"name": "main", "image": name}}}}}
}

// rest waits until the StatefulSet has the Pods that it wants, and returns them by their names.
func (s *scene) rest() map[string]types.UID {
	s.t.Helper()
	var uids map[string]types.UID
	controlplanetest.Eventually(s.t, "all Pods are of the newest revision and ready", func() bool {
		set := s.set()
		st, n := &set.Status, *set.Spec.Replicas
		if st.ObservedGeneration != set.Generation || st.Replicas != n || st.AvailableReplicas != n || st.UpdatedReplicas != n || st.CurrentRevision != st.UpdateRevision {
			return false
		}
		pods, _, err := s.pods.List(s.t.Context(), client.Selection{Namespace: s.key.Namespace})
		if err != nil || len(pods) != int(n) {
			return false
		}
		uids = map[string]types.UID{}
		for _, pod := range pods {
			uids[pod.Name] = pod.UID
			if !serving(pod) || revisionOf(pod) != st.UpdateRevision {
				return false
			}
		}
		return true
	})
	return uids
}

// history returns the names of the revisions.
func (s *scene) history() (names []string) {
	s.t.Helper()
	all, _, err := client.For[*appsv1.ControllerRevision](shared.Get(s.t).Client).List(s.t.Context(), client.Selection{Namespace: s.key.Namespace})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range all {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// TestOnARealServer runs scenes beside each other under one manager, which has the declared rights:
// two managers would act on the StatefulSets of all scenes.
func TestOnARealServer(t *testing.T) {
	cluster := shared.Get(t)
	p := managertest.Run(t, cluster.Restricted(t, Rights()), managertest.Making(New, Defaults()))
	for name, run := range map[string]func(*testing.T){
		"Pods and claims have their identity": func(t *testing.T) { podsAndClaimsHaveTheirIdentity(t, p) },
		"the order is kept, OrderedReady":     randomHistoryKeepsTheOrder,
		"the bound is kept, Parallel":         randomHistoryKeepsTheBound,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t)
		})
	}
	t.Cleanup(func() {
		for _, line := range p.Warnings() {
			t.Errorf("the log says: %s", line)
		}
	})
}

func podsAndClaimsHaveTheirIdentity(t *testing.T, p *managertest.Process) {
	cluster := shared.Get(t)
	s := newScene(t, web(2, parallel, withClaims(remove, remove), startAt(3), func(set *appsv1.StatefulSet) {
		set.Spec.VolumeClaimTemplates[0].Spec = corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(""),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}
	}))
	controlplanetest.Await(t, p, s.key, "both Pods exist", func(set *appsv1.StatefulSet) bool { return set.Status.Replicas == 2 })
	pod, err := s.pods.Get(t.Context(), object.Key{Namespace: s.key.Namespace, Name: "web-4"})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{
		"app": "web", "apps.kubernetes.io/pod-index": "4", "controller-revision-hash": s.set().Status.UpdateRevision, "statefulset.kubernetes.io/pod-name": "web-4",
	}
	if !maps.Equal(pod.Labels, labels) || pod.Spec.Hostname != "web-4" || pod.Spec.Subdomain != "web" || pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "data-web-4" {
		t.Errorf("the Pod is %v, %v", pod.ObjectMeta, pod.Spec)
	}
	claims := client.For[*corev1.PersistentVolumeClaim](cluster.Client)
	owner := func(name string) types.UID {
		claim, err := claims.Get(t.Context(), object.Key{Namespace: s.key.Namespace, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if ref := metav1.GetControllerOf(claim); ref != nil {
			return ref.UID
		}
		return ""
	}
	if uid := s.set().UID; owner("data-web-3") != uid || owner("data-web-4") != uid {
		t.Errorf("the claims belong to %s and %s, want the StatefulSet", owner("data-web-3"), owner("data-web-4"))
	}
	s.change(map[string]any{"replicas": 1})
	controlplanetest.Await(t, p, s.key, "one Pod is left", func(set *appsv1.StatefulSet) bool { return set.Status.Replicas == 1 })
	if got := owner("data-web-4"); got != pod.UID {
		t.Errorf("the claim of web-4 belongs to %s, want the Pod %s", got, pod.UID)
	}
}

// randomHistoryKeepsTheOrder checks every state of the Pods that the server had.
func randomHistoryKeepsTheOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	s := newScene(t, web(0))
	w := follow(t, s, true)
	s.change(map[string]any{"replicas": 3})
	s.rest()
	for range 5 {
		switch r.IntN(4) {
		case 0:
			s.change(map[string]any{"replicas": 1 + r.IntN(4)})
		case 1:
			s.change(withImage([]string{"web:1", "web:2", "web:3"}[r.IntN(3)]))
		case 2:
			s.disturb(w, r, func(pod *corev1.Pod) error {
				return s.pods.Delete(t.Context(), object.KeyOf(pod), client.GracePeriod(0))
			})
		case 3:
			s.disturb(w, r, func(pod *corev1.Pod) error {
				pod.Status.Phase = corev1.PodFailed
				_, err := s.pods.UpdateStatus(t.Context(), pod)
				return err
			})
		}
		s.rest()
	}
	s.change(map[string]any{"replicas": 0})
	controlplanetest.Eventually(t, "no Pod is left", func() bool { return s.set().Status.Replicas == 0 })
	w.end()
}

// randomHistoryKeepsTheBound is the same for a StatefulSet whose Pods come and go beside each other,
// with other bounds. Most changes come while the rollout before is under way.
func randomHistoryKeepsTheBound(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	s := newScene(t, web(0, parallel))
	w := follow(t, s, false)
	var in []bounds // since the StatefulSet was at rest, the newest one last
	change := func(size, unavailable int, image string) {
		t.Logf("size %d, maxUnavailable %d, image %s", size, unavailable, image)
		in = append(in, bounds{size, unavailable})
		w.expect(in)
		patch := withImage(image)
		patch["replicas"] = size
		patch["updateStrategy"] = map[string]any{"rollingUpdate": map[string]any{"maxUnavailable": unavailable}}
		s.change(patch)
	}
	rest := func() {
		w.catchUp(s.rest())
		in = in[len(in)-1:]
		w.expect(in)
	}
	change(5, 2, "web:0")
	rest()
	for i := range 6 {
		now := in[len(in)-1]
		switch image := fmt.Sprintf("web:%d", i%3); r.IntN(6) {
		case 0:
			change(4+r.IntN(3), now.unavailable, image)
		case 1:
			change(now.size, 1+r.IntN(3), image)
		case 2:
			s.disturb(w, r, func(pod *corev1.Pod) error {
				return s.pods.Delete(t.Context(), object.KeyOf(pod), client.GracePeriod(0), client.IfUID(pod.UID))
			})
		default:
			change(now.size, now.unavailable, image)
		}
		if r.IntN(3) == 0 {
			rest()
		}
	}
	change(in[len(in)-1].size, 2, "web:3")
	rest()
	if got := s.set().Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.IntValue(); got != 2 {
		t.Errorf("the server has maxUnavailable %d, want 2", got)
	}
	w.end()
}

// disturb does something to a Pod, of which the watcher knows.
func (s *scene) disturb(w *watcher, r *rand.Rand, f func(*corev1.Pod) error) {
	s.t.Helper()
	pods, _, err := s.pods.List(s.t.Context(), client.Selection{Namespace: s.key.Namespace})
	if err != nil || len(pods) == 0 {
		s.t.Fatal(len(pods), err)
	}
	pod := pods[r.IntN(len(pods))]
	s.t.Logf("%s is disturbed", pod.Name)
	w.mu.Lock()
	w.disturbed[pod.UID] = true
	w.mu.Unlock()
	if err := f(pod); err != nil && !apierrors.IsNotFound(err) {
		s.t.Fatal(fmt.Errorf("disturbing %s: %w", pod.Name, err))
	}
	controlplanetest.Eventually(s.t, "the Pod is gone", func() bool {
		now, err := s.pods.Get(s.t.Context(), object.KeyOf(pod))
		return err != nil || now.UID != pod.UID
	})
}
