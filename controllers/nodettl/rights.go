// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodettl

import rbacv1 "k8s.io/api/rbac/v1"

// Rights returns what the controller must be allowed to do. It reads a Node where the
// answer to a write of it was lost.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch"}},
	}
}
