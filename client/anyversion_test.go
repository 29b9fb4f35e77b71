// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestAKindIsFoundInAnotherVersionOfItsGroup(t *testing.T) {
	shop := object.Resource{Group: "shop.example.com", Version: "v2", Plural: "carts", Kind: "Cart", Namespaced: true}
	api := fakeapi.New(shop, object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true})
	c, err := client.New(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		group, version, kind, want string
	}{
		{"shop.example.com", "v2", "Cart", "carts.shop.example.com v2"},
		{"shop.example.com", "v1", "Cart", "carts.shop.example.com v2"},
		{"apps", "v1beta2", "Deployment", "deployments.apps v1"},
		{"shop.example.com", "v1", "Basket", ""},
		{"extensions", "v1beta1", "Deployment", ""},
		{"", "v7", "Pod", ""},
	} {
		got, err := c.ResolveAnyVersion(t.Context(), schema.GroupVersionKind{Group: test.group, Version: test.version, Kind: test.kind})
		switch {
		case test.want == "" && !apierrors.IsNotFound(err):
			t.Errorf("%s/%s %s: %v (%v), want none", test.group, test.version, test.kind, got, err)
		case test.want != "" && (err != nil || got.String()+" "+got.Version != test.want):
			t.Errorf("%s/%s %s: %v (%v), want %s", test.group, test.version, test.kind, got, err, test.want)
		}
	}
}

func TestTheSubresourcesOfAKind(t *testing.T) {
	resource := object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true}
	api := fakeapi.New()
	api.Serve(resource, fakeapi.WithStatus())
	c, err := client.New(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	if names, err := c.Subresources(t.Context(), resource); err != nil || !slices.Equal(names, []string{"scale", "status"}) {
		t.Errorf("they are %q (%v)", names, err)
	}
	if _, err := c.Subresources(t.Context(), object.Resource{Group: "apps", Version: "v9", Plural: "deployments"}); !apierrors.IsNotFound(err) {
		t.Errorf("of a version that is not served: %v", err)
	}
}
