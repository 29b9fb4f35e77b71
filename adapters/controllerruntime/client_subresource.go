// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// ownSubresource implements client.SubResourceClient.
type ownSubresource struct {
	crclient.SubResourceClient

	client *ownClient
	name   string
}

// Create creates a subresource: an eviction or a binding changes the object, and a token does not.
// The answer does not have the version of the object.
func (s *ownSubresource) Create(ctx context.Context, o, body crclient.Object, options ...crclient.SubResourceCreateOption) error {
	var how crclient.SubResourceCreateOptions
	how.ApplyOptions(options)
	ignored := s.name == "token" || len(how.DryRun) > 0 || how.DisableReadYourWritesConsistency
	return s.client.writeUnseen(o, ignored, func() error { return s.SubResourceClient.Create(ctx, o, body, options...) })
}

// Update replaces a subresource.
func (s *ownSubresource) Update(ctx context.Context, o crclient.Object, options ...crclient.SubResourceUpdateOption) error {
	var how crclient.SubResourceUpdateOptions
	how.ApplyOptions(options)
	return s.write(o, how.SubResourceBody, len(how.DryRun) > 0 || how.DisableReadYourWritesConsistency, func() error {
		return s.SubResourceClient.Update(ctx, o, options...)
	})
}

// Patch patches a subresource.
func (s *ownSubresource) Patch(ctx context.Context, o crclient.Object, patch crclient.Patch, options ...crclient.SubResourcePatchOption) error {
	var how crclient.SubResourcePatchOptions
	how.ApplyOptions(options)
	return s.write(o, how.SubResourceBody, len(how.DryRun) > 0 || how.DisableReadYourWritesConsistency, func() error {
		return s.SubResourceClient.Patch(ctx, o, patch, options...)
	})
}

// Apply applies a configuration of a subresource.
func (s *ownSubresource) Apply(ctx context.Context, config runtime.ApplyConfiguration, options ...crclient.SubResourceApplyOption) error {
	var how crclient.SubResourceApplyOptions
	how.ApplyOpts(options)
	ignored := len(how.DryRun) > 0 || how.DisableReadYourWritesConsistency
	return s.client.apply(config, ignored, func() error { return s.SubResourceClient.Apply(ctx, config, options...) })
}

// write sends a write. Its answer is in o, or in a body of another kind, which need not have the
// version of the object.
func (s *ownSubresource) write(o, body crclient.Object, ignored bool, send func() error) error {
	if body == nil {
		return s.client.write(o, ignored, send)
	}
	return s.client.writeUnseen(o, ignored, send)
}
