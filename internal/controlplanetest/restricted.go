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

// Restricted is that of package setpointtest, for all servers of the cluster.
func (c *Cluster) Restricted(t testing.TB, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	config := setpointtest.Restricted(t, c.Config, rules)
	c.AwaitRights(t, config, rules)
	return config
}

// AwaitRights waits until the authorizers of all servers have seen that who config
// connects as has these rights, all of which one binding to one role gives.
func (c *Cluster) AwaitRights(t testing.TB, config *rest.Config, rules []rbacv1.PolicyRule) {
	t.Helper()
	c.AwaitRightsIn(t, config, "", rules)
}

// AwaitRightsIn is AwaitRights for rights that hold in one namespace.
func (c *Cluster) AwaitRightsIn(t testing.TB, config *rest.Config, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, server := range c.Servers() {
		config := rest.CopyConfig(config)
		config.Host = server
		setpointtest.AwaitRights(t, config, namespace, rules)
	}
}

// RestrictedIn is Restricted with rights that hold in single namespaces, which are the
// keys of rules. They end with the namespaces.
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
