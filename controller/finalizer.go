// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Writer writes the objects of a kind: an informer does (cache.SharedInformer), and so does a
// view of a client (client.Typed).
type Writer[T object.Object] interface {
	Patch(ctx context.Context, key object.Key, patch client.Patch, options ...client.WriteOption) (T, error)
	UpdateStatus(ctx context.Context, o T, options ...client.WriteOption) (T, error)
}

// AddFinalizer has the deletion of o wait until [RemoveFinalizer] is called with the
// same name, which is of the form "example.com/what-for". It returns the object as the
// server then has it, or o itself where nothing is to be done. o is not changed.
//
// Add a finalizer before anything is made that has to be removed with the object: what
// is made first and recorded later is lost when the process ends in between.
//
// It is a conflict (apierrors.IsConflict) where the object has changed since o was
// read, and the server refuses it while the object is being deleted.
func AddFinalizer[T object.Object](ctx context.Context, server Writer[T], o T, name string) (T, error) {
	if slices.Contains(o.GetFinalizers(), name) {
		return o, nil
	}
	written, err := writeFinalizers(ctx, server, o, append(slices.Clone(o.GetFinalizers()), name))
	if err != nil {
		var none T
		return none, fmt.Errorf("adding finalizer %s to %s: %w", name, object.KeyOf(o), err)
	}
	return written, nil
}

// RemoveFinalizer lets the deletion of o go on. An object that does not have the
// finalizer any more, or is gone, is no error. It is a conflict where the object has
// changed since o was read. o is not changed.
func RemoveFinalizer[T object.Object](ctx context.Context, server Writer[T], o T, name string) error {
	left := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == name })
	if len(left) == len(o.GetFinalizers()) {
		return nil
	}
	if _, err := writeFinalizers(ctx, server, o, left); err != nil && !client.AbsentAt(err, object.KeyOf(o)) {
		return fmt.Errorf("removing finalizer %s from %s: %w", name, object.KeyOf(o), err)
	}
	return nil
}

// writeFinalizers replaces the whole list, because a merge patch knows no other way.
// The version makes sure that it is the list that was read, of the object that was
// read: an object created anew under the name has another version.
func writeFinalizers[T object.Object](ctx context.Context, server Writer[T], o T, names []string) (T, error) {
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{
		"finalizers":      names,
		"resourceVersion": o.GetResourceVersion(),
	}})
	if err != nil {
		var none T
		return none, err
	}
	return server.Patch(ctx, object.KeyOf(o), patch)
}
