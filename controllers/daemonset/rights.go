// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/controller/events"
)

// Rights returns what the controller must be allowed to do. The caller owns the result. Clusters
// with the admission plugin OwnerReferencesPermissionEnforcement require the right to
// daemonsets/finalizers for the owner references of Pods and ControllerRevisions.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{appsv1.GroupName}, Resources: []string{"daemonsets"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{appsv1.GroupName}, Resources: []string{"daemonsets/status", "daemonsets/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{appsv1.GroupName}, Resources: []string{"controllerrevisions"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		events.Rights(),
	}
}
