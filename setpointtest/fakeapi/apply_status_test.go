// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// gadgetsOf returns a view of the gadgets of a server.
func gadgetsOf(t *testing.T, api *fakeapi.Server) client.Typed[*unstructured.Unstructured] {
	t.Helper()
	c, err := client.New(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client.ForResource[*unstructured.Unstructured](c, gadgets)
}

// gadget returns a gadget with some fields besides its metadata.
func gadget(key object.Key, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: fields}
	o.SetGroupVersionKind(gadgets.GroupVersionKind())
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return o
}

// status returns the status of an object as text.
func status(o *unstructured.Unstructured) string { return fmt.Sprint(o.Object["status"]) }

func TestAnApplyOfACustomStatusOwnsWhatItApplied(t *testing.T) {
	api := fakeapi.New()
	served := api.Serve(gadgets, fakeapi.WithStatus())
	key := object.Key{Namespace: "ns", Name: "a"}
	if err := served.Add(gadget(key, map[string]any{})); err != nil {
		t.Fatal(err)
	}
	statuses := gadgetsOf(t, api).Sub("status")
	apply := func(manager, status string) error {
		data := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"a"},"status":%s}`, gadgets.APIVersion(), gadgets.Kind, status)
		_, err := statuses.Patch(t.Context(), key, client.Patch{Type: types.ApplyPatchType, Data: []byte(data)}, client.FieldManager(manager))
		return err
	}
	for _, step := range []struct{ applied, want string }{
		{`{"a":1,"b":2}`, "map[a:1 b:2]"},
		{`{"a":1}`, "map[a:1]"},
		{`{"a":2}`, "map[a:2]"},
	} {
		if err := apply("x", step.applied); err != nil {
			t.Fatalf("applying %s: %v", step.applied, err)
		}
		if got := status(served.Get(key)); got != step.want {
			t.Errorf("after %s the status is %s, want %s", step.applied, got, step.want)
		}
	}
	before := served.Get(key).GetResourceVersion()
	if err := apply("x", `{"a":2}`); err != nil || served.Get(key).GetResourceVersion() != before {
		t.Errorf("an apply that changes nothing wrote, or failed: %v", err)
	}
	if err := apply("y", `{"a":3}`); !apierrors.IsConflict(err) {
		t.Errorf("another manager's change of a field: %v, want a conflict", err)
	}
}

func TestAnUpdateOfAStatusCannotSayWhoOwnsAField(t *testing.T) {
	api := fakeapi.New()
	served := api.Serve(gadgets, fakeapi.WithStatus())
	key := object.Key{Namespace: "ns", Name: "a"}
	if err := served.Add(gadget(key, map[string]any{})); err != nil {
		t.Fatal(err)
	}
	changed := served.Get(key)
	changed.Object["status"] = map[string]any{"a": int64(1)}
	changed.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "x", Operation: metav1.ManagedFieldsOperationApply, APIVersion: gadgets.APIVersion(), Subresource: "status",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:a":{}}}`),
	}})
	if _, err := gadgetsOf(t, api).Sub("status").Update(t.Context(), key, changed); err != nil {
		t.Fatal(err)
	}
	if got := served.Get(key); status(got) != "map[a:1]" || got.GetManagedFields() != nil {
		t.Errorf("the object is %v", got.Object)
	}
}
