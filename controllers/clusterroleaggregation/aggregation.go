// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterroleaggregation

import (
	"cmp"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// selectorsOf returns the selectors of a sum. A role that is none has none.
func selectorsOf(role *rbacv1.ClusterRole) ([]labels.Selector, error) {
	if role.AggregationRule == nil {
		return nil, nil
	}
	var selectors []labels.Selector
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, fmt.Errorf("selector %d of cluster role %s: %w", i, role.Name, err)
		}
		selectors = append(selectors, selector)
	}
	return selectors, nil
}

// union returns the rules of all parts of a sum: what the first selector matched
// first, and of one selector in the order of names. The role called self is left out,
// and so is a rule that is there already. The result shares its rules with the parts
// and is never nil.
func union(self string, parts [][]*rbacv1.ClusterRole) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{}
	for _, part := range parts {
		part = slices.SortedFunc(slices.Values(part), func(a, b *rbacv1.ClusterRole) int { return cmp.Compare(a.Name, b.Name) })
		for _, role := range part {
			if role.Name == self {
				continue
			}
			for _, rule := range role.Rules {
				if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return same(r, rule) }) {
					rules = append(rules, rule)
				}
			}
		}
	}
	return rules
}

// same compares rules or lists of them as the API means them: no list is an empty
// one.
func same[T any](a, b T) bool { return equality.Semantic.DeepEqual(a, b) }

// configuration is the apply configuration of a sum.
type configuration struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        identity `json:"metadata"`
	// Rules is sent when it is empty too: what is not sent is left alone.
	Rules []rbacv1.PolicyRule `json:"rules"`
}

// identity has the UID, so that a role that is gone is not created again, and a new role
// of the same name is not written.
type identity struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

func configurationOf(role *rbacv1.ClusterRole, rules []rbacv1.PolicyRule) configuration {
	return configuration{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		Metadata: identity{Name: role.Name, UID: role.UID},
		Rules:    rules,
	}
}
