// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

var gadgets = object.Resource{Group: "client.example.com", Version: "v1", Plural: "gadgets", Kind: "Gadget", Namespaced: true}

// gadget is a custom kind whose Go type has protobuf methods, as types have that are made
// with the generators of Kubernetes, or that embed one of its types.
type gadget struct{ corev1.ConfigMap }

func (g *gadget) DeepCopyObject() runtime.Object { return &gadget{*g.DeepCopy()} }

// API servers take protobuf for their own kinds alone.
func TestCustomKindWhoseTypeHasProtobufMethodsIsWrittenAsJSON(t *testing.T) {
	cluster := shared.Get(t)
	cluster.Define(t, gadgets)
	t.Cleanup(func() { cluster.Undefine(t, gadgets) })
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(gadgets.GroupVersionKind(), &gadget{})
	c, err := client.New(cluster.Config, client.WithScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	view := client.For[*gadget](c)
	made, err := view.Create(t.Context(), &gadget{corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Data: map[string]string{"is": "made"},
	}})
	if err != nil {
		t.Fatalf("creating: %v", err)
	}
	made.Data["is"] = "changed"
	if made, err = view.Update(t.Context(), made); err != nil {
		t.Errorf("updating: %v", err)
	}
	patch, err := client.MergePatch(map[string]any{"data": map[string]any{"and": "patched"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := view.Patch(t.Context(), object.KeyOf(made), patch, client.MetadataAnswer()); err != nil {
		t.Errorf("patching: %v", err)
	}
	applied := &gadget{corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: gadgets.APIVersion(), Kind: gadgets.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Data: map[string]string{"then": "applied"},
	}}
	if _, err := view.Apply(t.Context(), object.KeyOf(made), "test", applied); err != nil {
		t.Errorf("applying: %v", err)
	}
	all, _, err := view.List(t.Context(), client.Selection{Namespace: "default"})
	if err != nil || len(all) != 1 || all[0].Data["is"] != "changed" || all[0].Data["and"] != "patched" || all[0].Data["then"] != "applied" {
		t.Errorf("listing: %v, %v", all, err)
	}
	if err := view.Delete(t.Context(), object.KeyOf(made), client.IfUID(made.UID)); err != nil {
		t.Errorf("deleting: %v", err)
	}
}
