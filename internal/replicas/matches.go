// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"iter"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// matches finds Pods that nobody manages by selector, and owners by such a Pod, at a
// cost that does not grow with what else the namespace holds.
//
// A selector that asks for label=value can only match Pods that carry that label.
// Two indexes meet there: owners stand under one pair that their selector asks for,
// and Pods without managing controller under each pair that they carry.
type matches[T object.Object] struct {
	owners   cache.SharedInformer[T]
	selector func(cache.Item[T]) labels.Selector
}

// The indexes. Their values are made by pairValue.
const (
	bySelector = "replicas/selector"
	byLabel    = "replicas/orphan-label"
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

// selector returns what an owner selects. An owner that cannot be read or understood
// selects nothing; its own run says why.
func (k *Kind[T]) selector(item cache.Item[T]) labels.Selector {
	owner, err := item.Object()
	if err != nil {
		return labels.Nothing()
	}
	asked, err := k.Demand(owner)
	if err != nil {
		return labels.Nothing()
	}
	return asked.Selector
}

func newMatches[T object.Object](owners cache.SharedInformer[T], pods cache.SharedInformer[*corev1.Pod], selector func(cache.Item[T]) labels.Selector) (*matches[T], error) {
	err := owners.AddIndex(bySelector, func(item cache.Item[T]) ([]string, error) {
		key, value := selectivePair(selector(item))
		return []string{pairValue(item.Meta().Namespace, key, value)}, nil
	})
	if err != nil {
		return nil, err
	}
	// The error is that there is this index: it serves all kinds.
	_ = pods.AddIndex(byLabel, func(item cache.Item[*corev1.Pod]) ([]string, error) {
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
	return &matches[T]{owners: owners, selector: selector}, nil
}

// orphans returns the Pods of a namespace without managing controller among which are
// all that a selector matches.
func orphans(pods cache.Snapshot[*corev1.Pod], namespace string, selector labels.Selector) iter.Seq2[object.Key, cache.Item[*corev1.Pod]] {
	if key, value := selectivePair(selector); key != "" {
		return pods.Index(byLabel, pairValue(namespace, key, value))
	}
	return pods.Orphans(namespace)
}

// of calls add for the owners whose selectors match a Pod.
func (m *matches[T]) of(pod object.Meta, add func(object.Key)) {
	snapshot := m.owners.Snapshot()
	try := func(value string) {
		for key, item := range snapshot.Index(bySelector, value) {
			if m.selector(item).Matches(pod.Labels) {
				add(key)
			}
		}
	}
	try(pairValue(pod.Namespace, "", ""))
	for key, value := range pod.Labels.All() {
		try(pairValue(pod.Namespace, key, value))
	}
}
