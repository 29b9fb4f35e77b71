// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// InformerRights returns what somebody must be allowed to do who runs the informers of
// controllers that do all else as accounts of their own: to list and watch what they
// declare that they do. The caller owns the result.
func InformerRights(entries []Entry) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, e := range entries {
		if e.Rights == nil {
			continue
		}
		for _, rule := range e.Rights() {
			rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return verb != "list" && verb != "watch" })
			if len(rule.Verbs) == 0 || slices.ContainsFunc(all, func(other rbacv1.PolicyRule) bool { return reflect.DeepEqual(rule, other) }) {
				continue
			}
			all = append(all, rule)
		}
	}
	return all
}
