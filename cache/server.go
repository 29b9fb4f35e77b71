// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Server returns the client's view of the kind. It reads from the server, and has what the
// methods below do not have: lists, deletes of collections, and subresources of other kinds:
//
//	scale := client.Sub[*autoscalingv1.Scale](deployments.Server(), "scale")
func (s SharedInformer[T]) Server() client.Typed[T] { return *s.server }

// With returns the informer with options for all its writes, before those of a single write. It
// has the reference of s, and takes no other.
func (s SharedInformer[T]) With(options ...client.WriteOption) SharedInformer[T] {
	with := s.server.With(options...)
	s.server = &with
	return s
}

// Create is [client.Typed.Create].
func (s SharedInformer[T]) Create(ctx context.Context, o T, options ...client.WriteOption) (T, error) {
	return s.server.Create(ctx, o, options...)
}

// Update is [client.Typed.Update].
func (s SharedInformer[T]) Update(ctx context.Context, o T, options ...client.WriteOption) (T, error) {
	return s.server.Update(ctx, o, options...)
}

// UpdateStatus is [client.Typed.UpdateStatus].
func (s SharedInformer[T]) UpdateStatus(ctx context.Context, o T, options ...client.WriteOption) (T, error) {
	return s.server.UpdateStatus(ctx, o, options...)
}

// Patch is [client.Typed.Patch].
func (s SharedInformer[T]) Patch(ctx context.Context, key object.Key, patch client.Patch, options ...client.WriteOption) (T, error) {
	return s.server.Patch(ctx, key, patch, options...)
}

// Apply is [client.Typed.Apply].
func (s SharedInformer[T]) Apply(ctx context.Context, key object.Key, manager string, config any, options ...client.WriteOption) (T, error) {
	return s.server.Apply(ctx, key, manager, config, options...)
}

// Delete is [client.Typed.Delete].
func (s SharedInformer[T]) Delete(ctx context.Context, key object.Key, options ...client.DeleteOption) error {
	return s.server.Delete(ctx, key, options...)
}

// Sub is [client.Typed.Sub].
func (s SharedInformer[T]) Sub(name string) client.Subresource[T] { return s.server.Sub(name) }
