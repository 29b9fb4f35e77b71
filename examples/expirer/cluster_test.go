// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
)

// rights are what the controller may do in a cluster.
var rights = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "delete"}},
}

func TestInACluster(t *testing.T) {
	cluster := setpointtest.Cluster(t)
	mgr, err := manager.New(setpointtest.Restricted(t, cluster.Config, rights))
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(newExpirer(mgr)); err != nil {
		t.Fatal(err)
	}
	setpointtest.Run(t, mgr)

	key := object.Key{Namespace: cluster.Namespace(t), Name: "note"}
	if _, err := client.For[*corev1.ConfigMap](cluster.Client).Create(t.Context(), note(key, "1s")); err != nil {
		t.Fatal(err)
	}
	setpointtest.AwaitGone[*corev1.ConfigMap](t, cluster.Client, key)
}
