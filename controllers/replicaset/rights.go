// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/controller/events"
)

// Rights returns what the controller must be allowed to do. The right to
// replicasets/finalizers is needed in clusters with the admission plugin
// OwnerReferencesPermissionEnforcement: a reference that delays the deletion of an owner
// needs the right to change the owner's finalizers.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"replicasets/status", "replicasets/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		events.Rights(),
	}
}
