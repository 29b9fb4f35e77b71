// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/controller/events"
)

// Rights returns what the controller must be allowed to do. It reads objects one by one
// where the answer to a write of them was lost. The right to deployments/finalizers is
// needed in clusters with the admission plugin OwnerReferencesPermissionEnforcement: a
// reference that delays the deletion of an owner needs the right to change the owner's
// finalizers.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "update"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/status", "deployments/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
		events.Rights(),
	}
}
