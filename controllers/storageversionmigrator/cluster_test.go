// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversionmigrator

import (
	"fmt"
	"os"
	"slices"
	"testing"

	migrationv1 "k8s.io/api/storagemigration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// migrate creates a migration of a resource and waits until it has ended.
func migrate(t *testing.T, of object.Resource) *migrationv1.StorageVersionMigration {
	t.Helper()
	migrations := client.For[*migrationv1.StorageVersionMigration](shared.Get(t).Client)
	m := &migrationv1.StorageVersionMigration{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-"}}
	m.Spec.Resource = metav1.GroupResource{Group: of.Group, Resource: of.Plural}
	m, err := migrations.Create(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the migration of "+of.String()+" has ended", func() bool {
		if m, err = migrations.Get(t.Context(), object.KeyOf(m)); err != nil {
			t.Fatal(err)
		}
		return hasEnded(m) && !isRunning(m)
	})
	if !is(m, migrationv1.MigrationSucceeded) {
		t.Fatalf("the migration of %s has not succeeded: %+v", of, m.Status)
	}
	return m
}

// A version of a custom kind can be removed when no object is stored in it any more. The server
// refuses the definition as long as storedVersions has the version, and could not read an object
// that were stored in it.
func TestAfterAMigrationTheOldVersionOfACustomKindCanGo(t *testing.T) {
	cluster := shared.Get(t)
	old := object.Resource{Group: "migration.example.com", Version: "v1", Plural: "sites", Kind: "Site", Namespaced: true}
	cluster.Define(t, old, "v1")
	t.Cleanup(func() { cluster.Undefine(t, old) })
	sites := client.ForResource[*unstructured.Unstructured](cluster.Client, old)
	namespace := cluster.Namespace(t)
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("site-%02d", i))
		site := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": old.APIVersion(), "kind": old.Kind,
			"metadata": map[string]any{"namespace": namespace, "name": names[i]}, "spec": map[string]any{"n": int64(i)},
		}}
		if _, err := sites.Create(t.Context(), site); err != nil {
			t.Fatal(err)
		}
	}
	cluster.Define(t, old, "v1", "v2") // v2 is stored from now on

	managertest.Run(t, cluster.Restricted(t, Rights()), managertest.Making(New, Defaults()))
	migrate(t, old)
	definition, err := client.ForResource[*unstructured.Unstructured](cluster.Client, definitions).Get(t.Context(), object.Key{Name: old.String()})
	if err != nil {
		t.Fatal(err)
	}
	stored, _, err := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
	if err != nil || !slices.Equal(stored, []string{"v2"}) {
		t.Fatalf("the stored versions are %v (%v), want v2", stored, err)
	}

	cluster.Define(t, old, "v2")
	now := old
	now.Version = "v2"
	list, _, err := client.ForResource[*unstructured.Unstructured](cluster.Client, now).List(t.Context(), client.Selection{Namespace: namespace, JSONOnly: true})
	if err != nil || len(list) != len(names) {
		t.Fatalf("%d objects can be read (%v), want %d", len(list), err, len(names))
	}
	for i, site := range list {
		if n, _, _ := unstructured.NestedInt64(site.Object, "spec", "n"); site.GetName() != names[i] || n != int64(i) {
			t.Errorf("object %d is %v", i, site.Object)
		}
	}
}

// Objects that are stored as they should be are not written, so their versions stay.
func TestAMigrationOfABuiltInKindWritesOnlyWhatIsStoredOtherwise(t *testing.T) {
	cluster := shared.Get(t)
	managertest.Run(t, cluster.Restricted(t, Rights()), managertest.Making(New, Defaults()))
	roles := object.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Plural: "clusterroles", Kind: "ClusterRole"}
	read := func() object.Version {
		t.Helper()
		o, err := client.ForResource[*metav1.PartialObjectMetadata](cluster.Client, roles).Get(t.Context(), object.Key{Name: "cluster-admin"})
		if err != nil {
			t.Fatal(err)
		}
		return object.Version(o.ResourceVersion)
	}
	before := read()
	m := migrate(t, roles)
	if after := read(); after != before {
		t.Errorf("the role cluster-admin was written: %s, then %s", before, after)
	}
	if m.Status.ResourceVersion == "" {
		t.Error("the status does not say up to which version")
	}
}
