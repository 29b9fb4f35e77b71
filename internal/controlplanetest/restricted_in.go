// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// RestrictedIn is Restricted with rights that hold in single namespaces, which are the
// keys of rules.
func (c *Cluster) RestrictedIn(t testing.TB, rules map[string][]rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	config := c.Restricted(t, nil)
	user := config.Impersonate.UserName
	roles, bindings := client.For[*rbacv1.Role](c.Client), client.For[*rbacv1.RoleBinding](c.Client)
	for namespace, rules := range rules {
		key := object.Key{Namespace: namespace, Name: user}
		meta := metav1.ObjectMeta{Namespace: namespace, Name: user}
		if _, err := roles.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}); err != nil {
			t.Fatalf("making a role for the test: %v", err)
		}
		t.Cleanup(func() { remove(t, roles, key) })
		binding := &rbacv1.RoleBinding{
			ObjectMeta: meta,
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		}
		if _, err := bindings.Create(t.Context(), binding); err != nil {
			t.Fatalf("binding a role for the test: %v", err)
		}
		t.Cleanup(func() { remove(t, bindings, key) })
		c.AwaitRightsIn(t, config, namespace, rules)
	}
	return config
}

// AwaitRightsIn is AwaitRights for rights that hold in one namespace.
func (c *Cluster) AwaitRightsIn(t testing.TB, config *rest.Config, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	if err := c.awaitRights(t.Context(), config, namespace, rules); err != nil {
		t.Fatalf("waiting for the rights of the test in namespace %q: %v", namespace, err)
	}
}
