// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// Rights returns what the controller must be allowed to do. It reads an account where
// the answer to its creation was lost.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get", "list", "watch", "create"}},
	}
}
