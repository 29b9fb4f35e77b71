// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// owned is what is needed of the client of a kind.
type owned[T any] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Patch(ctx context.Context, name string, t types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error)
}

type object interface {
	metav1.Object
	runtime.Object
}

// apply applies the fields that are set in o, unless the object has another owner.
func apply[T object](ctx context.Context, server owned[T], site *Website, o T) (T, error) {
	var none T
	there, err := server.Get(ctx, o.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return none, err
	}
	if err == nil && !metav1.IsControlledBy(there, site) {
		return none, fmt.Errorf("applying %s: there is one already, and %s does not manage it", o.GetName(), site.Name)
	}
	o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(site, websiteKind)})
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		return none, err
	}
	o.GetObjectKind().SetGroupVersionKind(kinds[0])
	data, err := json.Marshal(o)
	if err != nil {
		return none, err
	}
	return server.Patch(ctx, o.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: name, Force: new(true)})
}
