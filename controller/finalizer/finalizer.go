// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package finalizer

import (
	"context"
	"fmt"
	"slices"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Writer writes the objects of a kind: a cache.SharedInformer or a client.Typed.
type Writer[T object.Object] interface {
	Patch(ctx context.Context, key object.Key, patch client.Patch, options ...client.WriteOption) (T, error)
}

// Add makes the deletion of o wait until [Remove] is called with the same
// name, which has the form "example.com/what-for". It returns the object as the server has it,
// or o itself if o has the finalizer already. It does not change o.
//
// Add the finalizer before creating anything that must be deleted with the object: otherwise
// the created thing is lost if the process ends in between.
//
// The error is a conflict (apierrors.IsConflict) if the object has changed since o was read.
// The server refuses new finalizers while the object is being deleted.
func Add[T object.Object](ctx context.Context, server Writer[T], o T, name string) (T, error) {
	if slices.Contains(o.GetFinalizers(), name) {
		return o, nil
	}
	written, err := write(ctx, server, o, append(slices.Clone(o.GetFinalizers()), name))
	if err != nil {
		var none T
		return none, fmt.Errorf("adding finalizer %s to %s: %w", name, object.KeyOf(o), err)
	}
	return written, nil
}

// Remove lets the deletion of o continue. It is no error if the object does not have
// the finalizer any more or is gone. The error is a conflict (apierrors.IsConflict) if the
// object has changed since o was read. Remove does not change o.
func Remove[T object.Object](ctx context.Context, server Writer[T], o T, name string) error {
	left := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == name })
	if len(left) == len(o.GetFinalizers()) {
		return nil
	}
	if _, err := write(ctx, server, o, left); err != nil && !client.AbsentAt(err, object.KeyOf(o)) {
		return fmt.Errorf("removing finalizer %s from %s: %w", name, object.KeyOf(o), err)
	}
	return nil
}

// write replaces the whole list, as a merge patch cannot change a part of it. The
// version in the patch makes sure that neither the list nor the object is another one than
// o's: an object that was created again under the name has another version.
func write[T object.Object](ctx context.Context, server Writer[T], o T, names []string) (T, error) {
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{
		"finalizers":      names,
		"uid":             o.GetUID(),
		"resourceVersion": o.GetResourceVersion(),
	}})
	if err != nil {
		var none T
		return none, err
	}
	return server.Patch(ctx, object.KeyOf(o), patch)
}
