// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"iter"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// matches finds Pods that nobody manages by selector, and ReplicaSets by such a Pod,
// at a cost that does not grow with what else the namespace holds.
//
// A selector that asks for label=value can only match Pods that carry that label.
// Two indexes meet there: ReplicaSets stand under one pair that their selector
// asks for, and Pods without managing controller under each pair that they carry.
type matches struct {
	replicaSets cache.SharedInformer[*appsv1.ReplicaSet]
}

// The indexes. Their values are made by pairValue.
const (
	bySelector = "replicaset/selector"
	byLabel    = "replicaset/orphan-label"
)

// pairValue is where a pair stands in an index. Without a key it is the place of
// selectors that ask for no pair.
func pairValue(namespace, key, value string) string {
	if key == "" {
		return namespace + "/"
	}
	return namespace + "/" + key + "=" + value
}

// selectivePair returns the pair of a selector that few Pods carry: the hash that a
// Deployment gives its ReplicaSets, or else the first in order. The key is empty if
// the selector asks for no pair.
func selectivePair(selector labels.Selector) (key, value string) {
	const hash = appsv1.DefaultDeploymentUniqueLabelKey
	if value, ok := selector.RequiresExactMatch(hash); ok {
		return hash, value
	}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if value, ok := selector.RequiresExactMatch(r.Key()); ok {
			return r.Key(), value
		}
	}
	return "", ""
}

func newMatches(sets cache.SharedInformer[*appsv1.ReplicaSet], pods cache.SharedInformer[*corev1.Pod]) (*matches, error) {
	err := sets.AddIndex(bySelector, func(item cache.Item[*appsv1.ReplicaSet]) ([]string, error) {
		set, err := item.Object()
		if err != nil {
			return nil, err
		}
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		if err != nil {
			return nil, nil //nolint:nilerr // it matches nothing; its own run says why
		}
		key, value := selectivePair(selector)
		return []string{pairValue(set.Namespace, key, value)}, nil
	})
	if err != nil {
		return nil, err
	}
	err = pods.AddIndex(byLabel, func(item cache.Item[*corev1.Pod]) ([]string, error) {
		m := item.Meta()
		if m.Controller() != nil {
			return nil, nil
		}
		values := make([]string, 0, m.Labels.Len())
		for key, value := range m.Labels.All() {
			values = append(values, pairValue(m.Namespace, key, value))
		}
		return values, nil
	})
	return &matches{replicaSets: sets}, err
}

// orphans returns the Pods of a namespace without managing controller among which are
// all that a selector matches.
func orphans(pods cache.Snapshot[*corev1.Pod], namespace string, selector labels.Selector) iter.Seq2[object.Key, cache.Item[*corev1.Pod]] {
	if key, value := selectivePair(selector); key != "" {
		return pods.Index(byLabel, pairValue(namespace, key, value))
	}
	return pods.Orphans(namespace)
}

// sets calls add for the ReplicaSets whose selectors match a Pod.
func (m *matches) sets(pod object.Meta, add func(object.Key)) {
	snapshot := m.replicaSets.Snapshot()
	try := func(value string) {
		for key, item := range snapshot.Index(bySelector, value) {
			set, err := item.Object()
			if err != nil {
				continue // its own run says so
			}
			selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
			if err == nil && selector.Matches(pod.Labels) {
				add(key)
			}
		}
	}
	try(pairValue(pod.Namespace, "", ""))
	for key, value := range pod.Labels.All() {
		try(pairValue(pod.Namespace, key, value))
	}
}
