// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

var shared = Shared{Options: Options{Nodes: 3}}

// SharedCluster is the cluster of the tests in package controlplanetest_test.
var SharedCluster = &shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func TestWhatTestsLeaveIsDeletedWhateverKeepsIt(t *testing.T) {
	c := shared.Get(t)
	before, err := record(t.Context(), c.Client)
	if err != nil {
		t.Fatal(err)
	}
	widgets := object.Resource{Group: "pristine.example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true}
	c.Define(t, widgets)
	namespace := c.Namespace(t)
	for _, text := range []string{
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "finalizers": ["example.com/kept"]}}`,
		`{"apiVersion": "pristine.example.com/v1", "kind": "Widget", "metadata": {"name": "kept", "finalizers": ["example.com/kept"]}}`,
		`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "main", "image": "web"}]}}`,
		`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "machine-of-the-test"}}`,
		`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}`,
		`{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"}}`,
	} {
		file := t.TempDir() + "/object.json"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Kubectl("create", "--namespace", namespace, "--filename", file); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Kubectl("create", "clusterrole", "of-the-test", "--verb=get", "--resource=pods"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kubectl("create", "configmap", "of-the-test", "--namespace", "kube-system"); err != nil {
		t.Fatal(err)
	}

	if err := before.restore(t.Context(), c.Client); err != nil {
		t.Fatal(err)
	}

	if _, err := client.For[*corev1.Namespace](c.Client).Get(t.Context(), object.Key{Name: namespace}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace: %v, want that it is gone", err)
	}
	if c.list(t, widgets) == nil {
		t.Error("the custom kind is still served")
	}
	now, err := record(t.Context(), c.Client)
	if err != nil {
		t.Fatal(err)
	}
	if len(now) != len(before) {
		t.Errorf("there are %d objects, want the %d of before", len(now), len(before))
	}
}

func TestAClusterInWhichAnObjectOfItsOwnWasChangedOrDeletedIsNotAsItWas(t *testing.T) {
	c := shared.Get(t)
	roles := client.For[*rbacv1.ClusterRole](c.Client)
	nodes := client.For[*corev1.Node](c.Client)
	patch := func(change map[string]any) client.Patch {
		p, err := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": change}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, test := range map[string]struct {
		spoil func(*rbacv1.ClusterRole) error
		want  string
	}{
		"deleted": {func(r *rbacv1.ClusterRole) error { return roles.Delete(t.Context(), object.KeyOf(r)) }, "was deleted by a test"},
		"changed": {func(r *rbacv1.ClusterRole) error {
			_, err := roles.Patch(t.Context(), object.KeyOf(r), patch(map[string]any{"a": "b"}))
			return err
		}, "was changed by a test"},
		"a node": {func(*rbacv1.ClusterRole) error {
			_, err := nodes.Patch(t.Context(), object.Key{Name: "node-1"}, patch(map[string]any{"a": "b"}))
			return err
		}, "nodes node-1 was changed by a test"},
	} {
		t.Run(name, func(t *testing.T) {
			role, err := roles.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "pristine-"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := roles.Delete(context.WithoutCancel(t.Context()), object.KeyOf(role)); err != nil && !apierrors.IsNotFound(err) {
					t.Error(err)
				}
			})
			before, err := record(t.Context(), c.Client)
			if err != nil {
				t.Fatal(err)
			}
			if err := test.spoil(role); err != nil {
				t.Fatal(err)
			}
			if err := before.restore(t.Context(), c.Client); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	// The next test gets the node as it was.
	if _, err := nodes.Patch(t.Context(), object.Key{Name: "node-1"}, patch(map[string]any{"a": nil})); err != nil {
		t.Fatal(err)
	}
}
