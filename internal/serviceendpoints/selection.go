// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceendpoints

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller/selectors"
	"github.com/setpoint-io/setpoint/object"
)

// Selection finds Pods by Service and Services by Pod. It is safe for concurrent use.
type Selection struct {
	services *selectors.Index[*corev1.Service]
	pods     cache.SharedInformer[*corev1.Pod]
	byLabel  *selectors.Labelled[*corev1.Pod]
}

// NewSelection adds the indexes that it needs to the informers.
func NewSelection(services cache.SharedInformer[*corev1.Service], pods cache.SharedInformer[*corev1.Pod]) *Selection {
	return &Selection{selectors.NewIndex(services, selectorOf), pods, selectors.NewLabelled(pods)}
}

func selectorOf(service *corev1.Service) (labels.Selector, error) {
	if !Selects(service) {
		return labels.Nothing(), nil
	}
	return labels.SelectorFromValidatedSet(service.Spec.Selector), nil
}

// Selects reports whether a Service gets its endpoints from Pods that it selects: it
// has a selector, and is no other name for something outside of the cluster.
func Selects(service *corev1.Service) bool {
	return len(service.Spec.Selector) > 0 && service.Spec.Type != corev1.ServiceTypeExternalName
}

// selecting returns the Services that select a Pod.
func (s *Selection) selecting(pod cache.Item[*corev1.Pod]) []object.Key {
	var keys []object.Key
	for key := range s.services.Selecting(pod.Key().Namespace, pod.Labels()) {
		keys = append(keys, key)
	}
	return keys
}

// Pods returns the Pods that a Service selects, in the order of their names. They are
// shared and read-only.
func (s *Selection) Pods(service *corev1.Service) ([]*corev1.Pod, error) {
	if len(service.Spec.Selector) == 0 {
		return nil, nil
	}
	selector := labels.SelectorFromValidatedSet(service.Spec.Selector)
	pods, err := cache.Objects(s.byLabel.Selected(s.pods.Snapshot(), service.Namespace, selector))
	if err != nil {
		return nil, fmt.Errorf("reading the Pods of Service %s: %w", object.KeyOf(service), err)
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}
