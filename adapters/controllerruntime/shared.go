// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/object"
)

// Programs convert the informers of controller-runtime to SharedIndexInformer: cluster-api does, to compare the
// version of the store with those of its writes.
var _ toolscache.SharedIndexInformer = (*view)(nil)

// GetStore returns the objects that the cache has.
func (v *view) GetStore() toolscache.Store { return indexer{v} }

// GetIndexer returns the objects that the cache has, with the indexes of the view.
func (v *view) GetIndexer() toolscache.Indexer { return indexer{v} }

// LastSyncResourceVersion returns the version of the newest state; with several namespaces, the lowest of
// those of their informers. It is empty until all have listed.
func (v *view) LastSyncResourceVersion() string {
	var lowest object.Version
	for _, p := range v.store.parts {
		version := p.informer.Snapshot().Version()
		if version == "" {
			return ""
		}
		if lowest == "" || version.Compare(lowest) < 0 {
			lowest = version
		}
	}
	return string(lowest)
}

// GetController returns what runs the informer. It is the cache.
func (v *view) GetController() toolscache.Controller { return runner{v} }

// runner is the toolscache.Controller of a view.
type runner struct{ *view }

// Run waits until stop is closed.
func (v *view) Run(stop <-chan struct{}) { <-stop }

// RunWithContext waits until ctx ends: the cache runs the informer.
func (v *view) RunWithContext(ctx context.Context) { <-ctx.Done() }

// errOfCache is the error of settings that an informer of a cache has from the options of the cache.
var errOfCache = errors.New("the cache has started the informer: set this in cache.Options")

// SetWatchErrorHandler is an error: cache.Options has DefaultWatchErrorHandler.
func (v *view) SetWatchErrorHandler(toolscache.WatchErrorHandler) error {
	return fmt.Errorf("setting the handler of watch errors of %s: %w", v.kind.gvk, errOfCache)
}

// SetWatchErrorHandlerWithContext is as SetWatchErrorHandler.
func (v *view) SetWatchErrorHandlerWithContext(toolscache.WatchErrorHandlerWithContext) error {
	return v.SetWatchErrorHandler(nil)
}

// SetTransform is an error: cache.Options has transforms.
func (v *view) SetTransform(toolscache.TransformFunc) error {
	return fmt.Errorf("setting the transform of %s: %w", v.kind.gvk, errOfCache)
}
