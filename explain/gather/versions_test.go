// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// The former versions of an object have the field managers of their time, up to the present state.
func TestFormerVersionsHaveTheirFieldManagers(t *testing.T) {
	maps := object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}
	served := fakeapi.New().Serve(maps)
	c, err := client.New(served.Config())
	if err != nil {
		t.Fatal(err)
	}
	g, key := Gatherer{Client: c, Record: None("not needed")}, object.Key{Namespace: "shop", Name: "box"}
	var versions []string
	for i := range 5 {
		at := metav1.NewTime(time.Date(2026, 3, 2, 12, 0, i, 0, time.UTC))
		box := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "box", ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: fmt.Sprint("writer-", i), Operation: metav1.ManagedFieldsOperationUpdate, Time: &at, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:side":{}}}`),
		}}}, Data: map[string]string{"side": fmt.Sprint(i)}}
		if err := served.Put(box); err != nil {
			t.Fatal(err)
		}
		state, err := g.state(t.Context(), maps, key)
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, state["metadata"].(map[string]any)["resourceVersion"].(string))
	}
	state, err := g.state(t.Context(), maps, key)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	all := g.versions(t.Context(), maps, key, state, []string{versions[1]})
	if len(all) != 3 || all[0].Version != versions[2] || all[2].Version != versions[4] {
		t.Fatalf("the versions are %+v, want those after %s of %q", all, versions[1], versions)
	}
	for i, v := range all {
		if len(v.Managers) != 1 || v.Managers[0].Manager != fmt.Sprint("writer-", i+2) || !v.Managers[0].Owns("data.side") {
			t.Errorf("version %s has the field managers %+v", v.Version, v.Managers)
		}
	}
	if took := time.Since(began); took > versionsPatience {
		t.Errorf("it took %v, although the present state came", took)
	}
	if all := g.versions(t.Context(), maps, object.Key{Namespace: "shop", Name: "none"}, nil, nil); all != nil {
		t.Errorf("without a version to begin with, there are %+v", all)
	}
}
