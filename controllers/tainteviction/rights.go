// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package tainteviction

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/controller/events"
)

// Rights returns what the controller must be allowed to do. It reads a Pod where the
// answer to a write of it was lost.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
		events.Rights(),
	}
}
