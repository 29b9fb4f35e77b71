// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/devices"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// history is a random history of Pods with claims. It is also their scheduler, their kubelet and
// the garbage collector.
type history struct {
	t      *testing.T
	random *rand.Rand
	in     string // the namespace
	pods   client.Typed[*corev1.Pod]
	claims client.Typed[*resourcev1.ResourceClaim]
	made   int
	done   ended
}

// ended are the UIDs of Pods that have ended or are gone: they never need a claim again.
type ended struct {
	mu   sync.Mutex
	uids map[types.UID]bool
}

func (e *ended) add(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.uids[uid] = true
}

func (e *ended) has(uid types.UID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.uids[uid]
}

func (h *history) list() (pods []*corev1.Pod, claims []*resourcev1.ResourceClaim) {
	h.t.Helper()
	pods, _, err := h.pods.List(h.t.Context(), client.Selection{Namespace: h.in})
	check(h.t, err)
	claims, _, err = h.claims.List(h.t.Context(), client.Selection{Namespace: h.in})
	check(h.t, err)
	return pods, claims
}

// step changes one thing.
func (h *history) step() {
	h.t.Helper()
	pods, claims := h.list()
	pods = slices.DeleteFunc(pods, devices.Done)
	switch n := h.random.IntN(10); {
	case n < 3 || len(pods) == 0:
		h.made++
		p := pod(fmt.Sprint("p", h.made), []string{"", "nowhere"}[h.random.IntN(2)], []string{"a:devs", "b:devs", "s=shared"}[:1+h.random.IntN(3)]...)
		p.Namespace = h.in
		p.Spec.Containers = []corev1.Container{{Name: "main", Image: "web"}}
		p.Spec.SchedulerName = "the-history"
		_, err := h.pods.Create(h.t.Context(), p)
		check(h.t, err)
	case n < 5:
		p := pods[h.random.IntN(len(pods))]
		p.Status.Phase = corev1.PodSucceeded
		h.done.add(p.UID) // before, so that a check in between does not blame the controller
		_, err := h.pods.UpdateStatus(h.t.Context(), p)
		for apierrors.IsConflict(err) { // the controller has written the names of claims
			p, err = h.pods.Get(h.t.Context(), object.KeyOf(p))
			check(h.t, err)
			p.Status.Phase = corev1.PodSucceeded
			_, err = h.pods.UpdateStatus(h.t.Context(), p)
		}
		check(h.t, err)
	case n < 6:
		p := pods[h.random.IntN(len(pods))]
		h.done.add(p.UID)
		check(h.t, h.pods.Delete(h.t.Context(), object.KeyOf(p), client.GracePeriod(0)))
	case n < 7:
		h.collect()
	default:
		h.allocate(pods[h.random.IntN(len(pods))], claims)
	}
}

// collect deletes the claims of Pods that are gone.
func (h *history) collect() {
	h.t.Helper()
	pods, claims := h.list()
	for _, claim := range claims {
		ref := metav1.GetControllerOf(claim)
		if ref == nil || slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.UID == ref.UID }) {
			continue
		}
		key := object.KeyOf(claim)
		if err := h.claims.Delete(h.t.Context(), key, client.IfUID(claim.UID)); err != nil && !client.AbsentAt(err, key) {
			h.t.Fatal(err)
		}
	}
}

// allocate gives the claims of a Pod devices, and reserves them for it, as the scheduler does. A
// claim that has changed meanwhile is left as it is.
func (h *history) allocate(pod *corev1.Pod, claims []*resourcev1.ResourceClaim) {
	h.t.Helper()
	for _, c := range devices.ClaimsOf(pod) {
		at := slices.IndexFunc(claims, func(claim *resourcev1.ResourceClaim) bool { return claim.Name == c.Name && c.Is(claim, pod, false) })
		if at < 0 || claims[at].DeletionTimestamp != nil || devices.IsReservedFor(claims[at], pod, false) {
			continue
		}
		claim := claims[at]
		var err error
		if !slices.Contains(claim.Finalizers, resourcev1.Finalizer) {
			claim.Finalizers = append(claim.Finalizers, resourcev1.Finalizer)
			claim, err = h.claims.Update(h.t.Context(), claim)
		}
		if err == nil {
			if claim.Status.Allocation == nil {
				claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
					{Request: "gpu", Driver: "nobody.example.com", Pool: "pool", Device: "dev-0"},
				}}}
			}
			if h.random.IntN(4) > 0 || pod.Spec.NodeName == "" {
				claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID})
			} // otherwise the controller does it
			_, err = h.claims.UpdateStatus(h.t.Context(), claim)
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			h.t.Fatal(err)
		}
	}
}

// watch checks every version of every claim: a reservation is removed only from a Pod that has
// ended, a claim goes only if no Pod has it reserved, and an entry of a Pod never has two claims.
func (h *history) watch(p cache.Provider) {
	h.t.Helper()
	entries := map[string]string{}
	_, err := cache.Informer[*resourcev1.ResourceClaim](p, cache.InNamespace(h.in)).AddHandler(func(e cache.Event[*resourcev1.ResourceClaim]) {
		var was, is resourcev1.ResourceClaim
		if e.Old.Exists() {
			if o, err := e.Old.Object(); err == nil {
				was = *o
			}
		}
		if e.New.Exists() {
			if o, err := e.New.Object(); err == nil {
				is = *o
			}
		}
		for _, consumer := range was.Status.ReservedFor {
			if !slices.Contains(is.Status.ReservedFor, consumer) && !h.done.has(consumer.UID) {
				h.t.Errorf("claim %s is not reserved for Pod %s any more, which needs it", was.Name, consumer.Name)
			}
		}
		if was.Name != "" && (is.Name == "" || is.UID != was.UID) && len(was.Status.ReservedFor) > 0 {
			h.t.Errorf("claim %s went while it was reserved: %+v", was.Name, was.Status)
		}
		entryOf := func(claim *resourcev1.ResourceClaim) string {
			if ref := metav1.GetControllerOf(claim); ref != nil {
				return string(ref.UID) + " " + claim.Annotations[resourcev1.PodResourceClaimAnnotation]
			}
			return ""
		}
		if entry := entryOf(&is); entry != "" {
			if other := entries[entry]; other != "" && other != is.Name {
				h.t.Errorf("the entry %s has the claims %s and %s", entry, other, is.Name)
			}
			entries[entry] = is.Name
		} else if entry := entryOf(&was); entry != "" {
			delete(entries, entry)
		}
	}, cache.HandlerOptions{Name: h.t.Name(), EveryStep: true})
	check(h.t, err)
}

// missing says what is not as it must be when nothing happens any more.
func (h *history) missing() string {
	h.t.Helper()
	pods, claims := h.list()
	for _, claim := range claims {
		for _, consumer := range claim.Status.ReservedFor {
			if h.done.has(consumer.UID) {
				return fmt.Sprintf("claim %s is reserved for Pod %s, which has ended", claim.Name, consumer.Name)
			}
		}
		if ref := metav1.GetControllerOf(claim); ref != nil && h.done.has(ref.UID) {
			return fmt.Sprintf("claim %s is there, and Pod %s has ended", claim.Name, ref.Name)
		}
	}
	for _, pod := range pods {
		if devices.Done(pod) {
			continue
		}
		for _, c := range devices.ClaimsOf(pod) {
			at := slices.IndexFunc(claims, func(claim *resourcev1.ResourceClaim) bool { return claim.Name == c.Name && c.Is(claim, pod, false) })
			if at < 0 {
				return fmt.Sprintf("Pod %s has no claim %q for its entry %s", pod.Name, c.Name, c.Entry)
			}
			if pod.Spec.NodeName != "" && claims[at].Status.Allocation != nil && !devices.IsReservedFor(claims[at], pod, false) {
				return fmt.Sprintf("claim %s is allocated and not reserved for Pod %s, which is bound", c.Name, pod.Name)
			}
		}
	}
	return ""
}

// TestClaimsAreRightAtEveryVersionOfRandomHistories has a scheduler, kubelets and a garbage
// collector, watches that lag, and processes that are killed.
func TestClaimsAreRightAtEveryVersionOfRandomHistories(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			t.Logf("seed %d", seed)
			b := managertest.NewBubble(t)
			b.Serve(managertest.Pods, fakeapi.WithStatus())
			b.Serve(object.Resource{Group: "resource.k8s.io", Version: "v1", Plural: "resourceclaims", Kind: "ResourceClaim", Namespaced: true}, fakeapi.WithStatus())
			templates := b.Serve(object.Resource{Group: "resource.k8s.io", Version: "v1", Plural: "resourceclaimtemplates", Kind: "ResourceClaimTemplate", Namespaced: true})
			check(t, templates.Add(template("devs")))
			h := &history{
				t: t, in: "ns", random: rand.New(rand.NewPCG(seed, 5)), done: ended{uids: map[types.UID]bool{}},
				pods: client.For[*corev1.Pod](b.Client), claims: client.For[*resourcev1.ResourceClaim](b.Client),
			}
			shared := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shared"}, Spec: template("x").Spec.Spec}
			_, err := h.claims.Create(t.Context(), shared)
			check(t, err)
			h.watch(managertest.Run(t, b.Config()))
			start := func() *managertest.Process {
				return managertest.Run(t, b.Config(), managertest.Making(New, Defaults()))
			}
			p := start()
			var turn sync.Mutex // requests ask for the lag at the same time
			lag := rand.New(rand.NewPCG(seed, 7))
			b.LagWatches(func() time.Duration {
				turn.Lock()
				defer turn.Unlock()
				return time.Duration(lag.IntN(200)) * time.Millisecond
			})
			for range 120 {
				h.step()
				pass(time.Duration(h.random.IntN(300)) * time.Millisecond)
				if h.random.IntN(30) == 0 {
					p.Kill()
					p = start()
				}
			}
			managertest.Settle()
			h.collect()
			managertest.Settle()
			if missing := h.missing(); missing != "" {
				t.Error(missing)
			}
		})
	}
}
