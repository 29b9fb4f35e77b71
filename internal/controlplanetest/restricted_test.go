// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

func TestARestrictedIdentityMayDoWhatItsRulesSayAndNothingElse(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	config := cluster.Restricted(t, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get"}},
	})
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	maps := client.For[*corev1.ConfigMap](c)
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(t.Context(), object.KeyOf(made)); err != nil {
		t.Error(err)
	}
	if err := maps.Delete(t.Context(), object.KeyOf(made)); !apierrors.IsForbidden(err) {
		t.Errorf("deleting, which no rule allows: %v, want that it is forbidden", err)
	}
	if _, _, err := client.For[*corev1.Secret](c).List(t.Context(), client.Selection{Namespace: namespace}); !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets, which no rule allows: %v, want that it is forbidden", err)
	}
}

func TestTheRightsOfARestrictedIdentityEndWithItsTest(t *testing.T) {
	cluster := shared.Get(t)
	var name string
	t.Run("in it", func(t *testing.T) {
		name = cluster.Restricted(t, []rbacv1.PolicyRule{
			{NonResourceURLs: []string{"/logs"}, Verbs: []string{"get"}},
		}).Impersonate.UserName
		if _, err := client.For[*rbacv1.ClusterRole](cluster.Client).Get(t.Context(), object.Key{Name: name}); err != nil {
			t.Error(err)
		}
	})
	if _, err := client.For[*rbacv1.ClusterRole](cluster.Client).Get(t.Context(), object.Key{Name: name}); !apierrors.IsNotFound(err) {
		t.Errorf("the role after the test: %v, want that it is gone", err)
	}
	if _, err := client.For[*rbacv1.ClusterRoleBinding](cluster.Client).Get(t.Context(), object.Key{Name: name}); !apierrors.IsNotFound(err) {
		t.Errorf("the binding after the test: %v, want that it is gone", err)
	}
}

func TestTheRightsHoldOnEveryServer(t *testing.T) {
	cluster := controlplanetest.Start(t, controlplanetest.Options{Servers: 2})
	for range 5 {
		config := cluster.Restricted(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}})
		for _, server := range cluster.Servers() {
			config.Host = server
			c, err := client.New(config)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := client.For[*corev1.Node](c).List(t.Context(), client.Selection{}); err != nil {
				t.Errorf("%s: %v", server, err)
			}
		}
	}
}
