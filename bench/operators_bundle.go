// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"
)

// bundle is what trust-manager caches: Namespaces, and the metadata of a ConfigMap in each, which it writes itself for the
// Bundle. Of ConfigMaps of others it caches those of its own Namespace alone.
type bundle struct {
	*scene
	kinds string // folder of their definitions
}

// trustNamespace is where trust-manager looks for sources of Bundles, by default.
const trustNamespace = "cert-manager"

const bundleName = "roots"

var bundles = schema.GroupVersionResource{Group: "trust.cert-manager.io", Version: "v1alpha1", Resource: "bundles"}

func (b *bundle) define(ctx context.Context) error {
	if err := b.defineKinds(ctx, b.kinds); err != nil {
		return err
	}
	if err := b.addNamespace(ctx, trustNamespace); err != nil {
		return err
	}
	return poll(ctx, "the kind Bundle", func() (bool, error) {
		_, err := b.dynamic.Resource(bundles).List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil, nil
	})
}

func (b *bundle) create(ctx context.Context) error {
	err := b.each(ctx, b.size, func(ctx context.Context, i int) error { return b.addNamespace(ctx, tenant(i)) })
	if err != nil {
		return err
	}
	root, _, err := cert.GenerateSelfSignedCertKey("root.example", nil, nil)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: part{
		"apiVersion": bundles.GroupVersion().String(), "kind": "Bundle", "metadata": part{"name": bundleName},
		"spec": part{"sources": []any{part{"inLine": string(root)}}, "target": part{"configMap": part{"key": "roots.pem"}}},
	}}
	_, err = b.dynamic.Resource(bundles).Create(ctx, o, metav1.CreateOptions{})
	return err
}

func (b *bundle) bytes(ctx context.Context) (int, error) {
	last, err := b.plain.CoreV1().ConfigMaps(tenant(b.size-1)).Get(ctx, bundleName, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("reading what trust-manager has written: %w", err)
	}
	text, err := json.Marshal(last)
	return len(text), err
}

func tenant(i int) string { return fmt.Sprintf("tenant-%05d", i) }
