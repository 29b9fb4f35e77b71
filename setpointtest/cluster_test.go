// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
)

// file writes a manifest and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestADeploymentGetsItsPodsAndTakesThemAlong(t *testing.T) {
	cluster := setpointtest.Cluster(t)
	namespace := cluster.Namespace(t)
	cluster.Apply(t, namespace, "testdata/web.yaml",
		file(t, "# a comment\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: page}\ndata: {a: b}\n---\n"))
	web := object.Key{Namespace: namespace, Name: "web"}
	setpointtest.Await(t, cluster.Client, web, "all replicas are available", func(d *appsv1.Deployment) bool {
		return d.Status.AvailableReplicas == 3
	})
	setpointtest.Await(t, cluster.Client, object.Key{Namespace: namespace, Name: "page"}, "the other document", func(m *corev1.ConfigMap) bool {
		return m.Data["a"] == "b"
	})

	if err := client.For[*appsv1.Deployment](cluster.Client).Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	setpointtest.AwaitGone[*appsv1.Deployment](t, cluster.Client, web)
	setpointtest.Eventually(t, "no Pod is left", func() error {
		pods, _, err := client.For[*corev1.Pod](cluster.Client).List(t.Context(), client.Selection{Namespace: namespace})
		if len(pods) > 0 {
			return fmt.Errorf("there is still %s", pods[0].Name)
		}
		return err
	})
}

const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.setpointtest.example.com}
spec:
  group: setpointtest.example.com
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget, singular: gadget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func TestTheNamespaceOfATestGoesWhateverKeepsItsObjects(t *testing.T) {
	cluster := setpointtest.Cluster(t)
	var namespace string
	t.Run("in it", func(t *testing.T) {
		namespace = cluster.Namespace(t)
		cluster.Apply(t, "", file(t, gadgets))
		cluster.Apply(t, namespace, "testdata/web.yaml", file(t,
			"apiVersion: setpointtest.example.com/v1\nkind: Gadget\nmetadata: {name: kept, finalizers: [example.com/ours]}\n"))
	})
	if t.Failed() {
		return
	}
	if _, err := client.For[*corev1.Namespace](cluster.Client).Get(t.Context(), object.Key{Name: namespace}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace after the test: %v, want that it is gone", err)
	}
	kept := client.ForResource[*unstructured.Unstructured](cluster.Client, object.Resource{
		Group: "setpointtest.example.com", Version: "v1", Plural: "gadgets", Kind: "Gadget", Namespaced: true,
	})
	if _, err := kept.Get(t.Context(), object.Key{Namespace: namespace, Name: "kept"}); !apierrors.IsNotFound(err) {
		t.Errorf("an object with a finalizer after the test: %v, want that it is gone", err)
	}
}

func TestARestrictedIdentityMayDoWhatItsRulesSayAndNothingElse(t *testing.T) {
	cluster := setpointtest.Cluster(t)
	namespace := cluster.Namespace(t)
	var name string
	t.Run("in it", func(t *testing.T) {
		config := setpointtest.Restricted(t, cluster.Config, []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get"}},
		})
		name = config.Impersonate.UserName
		c, err := client.New(config)
		if err != nil {
			t.Fatal(err)
		}
		maps := client.For[*corev1.ConfigMap](c)
		made, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := maps.Delete(t.Context(), object.KeyOf(made)); !apierrors.IsForbidden(err) {
			t.Errorf("deleting, which no rule allows: %v, want that it is forbidden", err)
		}
	})
	if t.Failed() {
		return
	}
	if _, err := client.For[*rbacv1.ClusterRole](cluster.Client).Get(t.Context(), object.Key{Name: name}); !apierrors.IsNotFound(err) {
		t.Errorf("the role after the test: %v, want that it is gone", err)
	}
	if _, err := client.For[*rbacv1.ClusterRoleBinding](cluster.Client).Get(t.Context(), object.Key{Name: name}); !apierrors.IsNotFound(err) {
		t.Errorf("the binding after the test: %v, want that it is gone", err)
	}
}

func TestAClusterOfOnesOwnHasWhatItsFlagsSayAndEndsWithItsTest(t *testing.T) {
	var own *setpointtest.Environment
	t.Run("in it", func(t *testing.T) {
		own = setpointtest.Own(t, "--nodes=1")
		nodes, _, err := client.For[*corev1.Node](own.Client).List(t.Context(), client.Selection{})
		if err != nil || len(nodes) != 1 {
			t.Errorf("%d nodes (%v), want 1", len(nodes), err)
		}
		if own.Config.Host == setpointtest.Cluster(t).Config.Host {
			t.Error("it is the cluster of all tests")
		}
	})
	if testing.Short() {
		return
	}
	if _, _, err := client.For[*corev1.Node](own.Client).List(t.Context(), client.Selection{}); !client.Unreachable(err) {
		t.Errorf("the cluster after the test: %v, want that nobody can reach it", err)
	}
}

// failing is a test that is expected to fail.
type failing struct {
	testing.TB
	said chan string
}

func (f *failing) Fatal(args ...any) { f.said <- args[0].(error).Error(); panic(f) }

// fails returns what a test says that fails.
func fails(t *testing.T, test func(testing.TB)) string {
	t.Helper()
	f := &failing{t, make(chan string, 1)}
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(f) {
				panic(r)
			}
		}()
		test(f)
	}()
	select {
	case said := <-f.said:
		return said
	default:
		t.Fatal("the test did not fail")
		return ""
	}
}

func TestATestWithoutTheProgramFailsAndSaysWhereItIsLookedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("with -short, no cluster is looked for")
	}
	own := func(t testing.TB) { setpointtest.Own(t) }
	t.Setenv("SETPOINT_BIN", filepath.Join(t.TempDir(), "none"))
	if said := fails(t, own); !strings.Contains(said, "as $SETPOINT_BIN says") {
		t.Errorf("it says %q", said)
	}
	t.Setenv("SETPOINT_BIN", "")
	t.Setenv("PATH", t.TempDir())
	t.Chdir(t.TempDir())
	for _, part := range []string{"make build", "PATH", "SETPOINT_BIN", "-short"} {
		if said := fails(t, own); !strings.Contains(said, part) {
			t.Errorf("it says %q, want that it names %s", said, part)
		}
	}
}

func TestAClusterThatCannotStartSaysWhy(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the program")
	}
	said := fails(t, func(t testing.TB) { setpointtest.Own(t, "--nodes=-1") })
	for _, part := range []string{"--nodes=-1: want 0 or more", "exit status"} {
		if !strings.Contains(said, part) {
			t.Errorf("it says %q, want %q", said, part)
		}
	}
}
