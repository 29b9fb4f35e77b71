// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

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
