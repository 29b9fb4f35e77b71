// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/setpointtest"
)

// Restricted returns the configuration of a user who has only some rights, as
// setpointtest.Restricted does, once all servers of the cluster know the rights.
func (c *Cluster) Restricted(t testing.TB, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	config := setpointtest.Restricted(t, c.Config, rules)
	c.AwaitRights(t, config, rules)
	return config
}

// AwaitRights waits until all servers allow the user of config what the rules name. One
// binding to one role must give all of these rights.
func (c *Cluster) AwaitRights(t testing.TB, config *rest.Config, rules []rbacv1.PolicyRule) {
	t.Helper()
	c.AwaitRightsIn(t, config, "", rules)
}

// AwaitRightsIn is AwaitRights for rights in one namespace.
func (c *Cluster) AwaitRightsIn(t testing.TB, config *rest.Config, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, server := range c.Servers() {
		config := rest.CopyConfig(config)
		config.Host = server
		setpointtest.AwaitRights(t, config, namespace, rules)
	}
}

// RestrictedIn is Restricted with rights in single namespaces, which are the keys of rules.
// Role and binding are deleted with their namespace.
func (c *Cluster) RestrictedIn(t testing.TB, rules map[string][]rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	config := c.Restricted(t, nil)
	user := config.Impersonate.UserName
	roles, bindings := client.For[*rbacv1.Role](c.Client), client.For[*rbacv1.RoleBinding](c.Client)
	for namespace, rules := range rules {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: user}
		if _, err := roles.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}); err != nil {
			t.Fatalf("making a role for the test: %v", err)
		}
		binding := &rbacv1.RoleBinding{
			ObjectMeta: meta,
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		}
		if _, err := bindings.Create(t.Context(), binding); err != nil {
			t.Fatalf("binding a role for the test: %v", err)
		}
		c.AwaitRightsIn(t, config, namespace, rules)
	}
	return config
}
