// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceendpoints

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// Selection finds Pods by Service and Services by Pod. It is safe for concurrent use.
type Selection struct {
	services cache.SharedInformer[*corev1.Service]
	pods     cache.SharedInformer[*corev1.Pod]
}

// The indexes. Controllers that share informers share them, too.
const (
	bySelector = "serviceendpoints/selector"
	byLabel    = "serviceendpoints/label"
)

// NewSelection adds the indexes that it needs to the informers.
func NewSelection(services cache.SharedInformer[*corev1.Service], pods cache.SharedInformer[*corev1.Pod]) (*Selection, error) {
	err := services.AddIndex(bySelector, func(item cache.Item[*corev1.Service]) ([]string, error) {
		service, err := item.Object()
		if err != nil || !Selects(service) {
			return nil, err
		}
		return places(service.Namespace, object.LabelsOf(service.Spec.Selector)), nil
	})
	if err != nil && !errors.Is(err, cache.ErrIndexTaken) {
		return nil, fmt.Errorf("indexing Services by selector: %w", err)
	}
	err = pods.AddIndex(byLabel, func(item cache.Item[*corev1.Pod]) ([]string, error) {
		m := item.Meta()
		values := make([]string, 0, m.Labels.Len())
		for key, value := range m.Labels.All() {
			values = append(values, pairOf(m.Namespace, key, value))
		}
		return values, nil
	})
	if err != nil && !errors.Is(err, cache.ErrIndexTaken) {
		return nil, fmt.Errorf("indexing Pods by label: %w", err)
	}
	return &Selection{services, pods}, nil
}

// pairOf returns where Pods with a label stand in the index. All of them keep it, so
// there is one of each.
func pairOf(namespace, key, value string) string {
	return unique.Make(namespace + "/" + key + "=" + value).Value()
}

// Selects reports whether a Service gets its endpoints from Pods that it selects: it
// has a selector, and is no other name for something outside of the cluster.
func Selects(service *corev1.Service) bool {
	return len(service.Spec.Selector) > 0 && service.Spec.Type != corev1.ServiceTypeExternalName
}

// Services calls found for each Service that selects Pods with these labels.
func (s *Selection) Services(namespace string, podLabels object.Labels, found func(object.Key)) {
	snapshot := s.services.Snapshot()
	matching(namespace, podLabels, func(place string) iter.Seq2[object.Key, cache.Item[*corev1.Service]] {
		return snapshot.Index(bySelector, place)
	}, found)
}

// Pods returns the Pods that a Service selects, in the order of their names. They are
// shared and read-only.
func (s *Selection) Pods(service *corev1.Service) ([]*corev1.Pod, error) {
	snapshot := s.pods.Snapshot()
	var pairs []iter.Seq2[object.Key, cache.Item[*corev1.Pod]]
	for key, value := range service.Spec.Selector {
		pairs = append(pairs, snapshot.Index(byLabel, pairOf(service.Namespace, key, value)))
	}
	if len(pairs) == 0 {
		return nil, nil
	}
	selector := labels.SelectorFromValidatedSet(service.Spec.Selector)
	pods, err := cache.Objects(cache.Matching(fewest(pairs), selector))
	if err != nil {
		return nil, fmt.Errorf("reading the Pods of Service %s: %w", object.KeyOf(service), err)
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}

// fewest returns the shortest of several sequences, or nearly so, without walking any
// of them much further than its length.
func fewest[K, V any](all []iter.Seq2[K, V]) iter.Seq2[K, V] {
	for most := 64; len(all) > 1; most *= 4 {
		for _, seq := range all {
			n := 0
			for range seq {
				if n++; n > most {
					break
				}
			}
			if n <= most {
				return seq
			}
		}
	}
	return all[0]
}
