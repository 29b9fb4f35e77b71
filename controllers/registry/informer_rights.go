// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/controllers"
)

// InformerRights returns the rights of a process whose controllers write as accounts of
// their own, while it runs their informers: to list and watch the kinds that they
// declare. The caller owns the result.
func InformerRights(of []*controllers.Descriptor) controllers.Rules {
	all := controllers.Rules{}
	for _, d := range of {
		for namespace, rules := range d.Rights() {
			for _, rule := range rules {
				rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return verb != "list" && verb != "watch" })
				same := func(other rbacv1.PolicyRule) bool { return reflect.DeepEqual(rule, other) }
				if len(rule.Verbs) > 0 && !slices.ContainsFunc(all[namespace], same) {
					all[namespace] = append(all[namespace], rule)
				}
			}
		}
	}
	return all
}
