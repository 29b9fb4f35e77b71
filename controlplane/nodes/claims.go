// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/internal/devices"
	"github.com/setpoint-io/setpoint/workqueue"
)

// reasonNotPrepared is the reason of the Event of a Pod whose claims are waited for.
// Source: k8s.io/kubernetes/pkg/kubelet/events, FailedPrepareDynamicResources.
const reasonNotPrepared = "FailedPrepareDynamicResources"

// servesClaims asks the API server whether it serves resource.k8s.io/v1. If it does not, no
// claim is waited for.
func (s *simulation) servesClaims(ctx context.Context) (bool, error) {
	// Not Discovery().ServerResourcesForGroupVersion, which takes no context.
	_, err := s.client.Discovery().RESTClient().Get().AbsPath("/apis/" + resourcev1.SchemeGroupVersion.String()).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking the API server for %s: %w", resourcev1.SchemeGroupVersion, err)
	}
	return true, nil
}

// followClaims keeps the ResourceClaims, and has a Pod played when a claim is reserved for it or its PodGroup.
func (s *simulation) followClaims(ctx context.Context, listed func()) {
	put := func(claim *resourcev1.ResourceClaim) {
		claim.ManagedFields, claim.Spec = nil, resourcev1.ResourceClaimSpec{} // never read
		s.store.putClaim(claim)
		s.queue.AddWith(workqueue.Add{}, s.store.podsOf(claim)...)
	}
	api := s.client.ResourceV1().ResourceClaims(metav1.NamespaceAll)
	follow(ctx, feed[*resourcev1.ResourceClaim]{
		what: "resourceclaims",
		list: func(ctx context.Context, options metav1.ListOptions) ([]*resourcev1.ResourceClaim, string, error) {
			list, err := api.List(ctx, options)
			if err != nil {
				return nil, "", err
			}
			return pointers(list.Items), list.ResourceVersion, nil
		},
		watch: api.Watch,
		replace: func(claims []*resourcev1.ResourceClaim) {
			s.store.dropClaims()
			for _, claim := range claims {
				put(claim)
			}
			listed()
		},
		change: func(claim *resourcev1.ResourceClaim, gone bool) {
			if gone {
				s.store.dropClaim(claim)
				return
			}
			put(claim)
		},
	}, s.log)
}

// podsOf returns the Pods that a claim is reserved for, those of a PodGroup among them.
func (s *store) podsOf(claim *resourcev1.ResourceClaim) (pods []key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, consumer := range claim.Status.ReservedFor {
		switch {
		case devices.IsPod(consumer):
			pods = append(pods, key{name: types.NamespacedName{Namespace: claim.Namespace, Name: consumer.Name}})
		case devices.IsGroup(consumer):
			for name, state := range s.pods {
				if name.Namespace == claim.Namespace && devices.GroupOf(state.object) == consumer.Name {
					pods = append(pods, key{name: name})
				}
			}
		}
	}
	return pods
}

// withClaims has the Pods wait for their claims from now on.
func (s *store) withClaims() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims = map[types.NamespacedName]*resourcev1.ResourceClaim{}
}

func claimName(claim *resourcev1.ResourceClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
}

func (s *store) putClaim(claim *resourcev1.ResourceClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims[claimName(claim)] = claim
}

func (s *store) dropClaim(claim *resourcev1.ResourceClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claims, claimName(claim))
}

// dropClaims forgets all claims: a list follows.
func (s *store) dropClaims() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.claims)
}

// unprepared says which claim of a Pod is not ready for it, and why; "" is none. The rules are the
// kubelet's: a claim must be allocated, and reserved for the Pod or its PodGroup.
func (s *store) unprepared(pod *corev1.Pod) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claims == nil {
		return ""
	}
	for _, used := range devices.ClaimsOf(pod) {
		if used.Skipped {
			continue
		}
		if used.Name == "" {
			return fmt.Sprintf("no ResourceClaim was made yet for the entry %s of spec.resourceClaims", used.Entry)
		}
		claim := s.claims[types.NamespacedName{Namespace: pod.Namespace, Name: used.Name}]
		switch {
		case claim == nil:
			return fmt.Sprintf("the ResourceClaim %s does not exist", used.Name)
		case !used.Is(claim, pod, true):
			return fmt.Sprintf("the ResourceClaim %s was not made for this Pod", used.Name)
		case claim.Status.Allocation == nil:
			return fmt.Sprintf("the ResourceClaim %s is not allocated", used.Name)
		case !devices.IsReservedFor(claim, pod, true):
			return fmt.Sprintf("the ResourceClaim %s is not reserved for this Pod", used.Name)
		}
	}
	return ""
}

// tellUnprepared records which claim a Pod that has not started waits for, once for each cause.
func (s *simulation) tellUnprepared(ctx context.Context, state *podState, pod *corev1.Pod, unprepared string) {
	if pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil || unprepared == state.waits {
		return
	}
	if state.waits = unprepared; unprepared != "" {
		s.event(ctx, reference("Pod", pod), podEvent{corev1.EventTypeWarning, reasonNotPrepared, "Failed to prepare dynamic resources: " + unprepared})
	}
}
