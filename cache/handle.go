// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Handle is an informer without its type. It is comparable: two Handles are equal if they are
// of one informer, and neither has succeeded another one ([Succeeding]).
type Handle struct{ informer *informer }

// Kind returns the plural of the kind, for logs.
func (h Handle) Kind() string { return h.informer.name }

// GroupKind returns the kind's group and kind.
func (h Handle) GroupKind() (group, kind string) { return h.informer.kind.Group, h.informer.kind.Kind }

// WaitForSync is as [SharedInformer.WaitForSync].
func (h Handle) WaitForSync(ctx context.Context) error {
	return h.informer.now().waitForSync(ctx)
}

// Observed is as [SharedInformer.Observed].
func (h Handle) Observed(v object.Version) (<-chan struct{}, func()) {
	return h.informer.now().versions.wait(v)
}

// Gone returns a channel that is closed once the informer has seen that the object with this
// UID is gone or being deleted, and a function that ends the wait. An empty UID is that of any
// object with the key.
func (h Handle) Gone(key object.Key, uid types.UID) (<-chan struct{}, func()) {
	return h.informer.waitGone(key, uid, false)
}

// Removed is as Gone, but an object that is being deleted is not gone yet.
func (h Handle) Removed(key object.Key, uid types.UID) (<-chan struct{}, func()) {
	return h.informer.waitGone(key, uid, true)
}

// Client returns the client that the informer reads with.
func (h Handle) Client() *client.Client { return h.informer.client }

// Partial reports whether the informer leaves out some objects of the kind: by
// namespace, labels or fields.
func (h Handle) Partial() bool { return h.informer.chosen.partial() }

// Annotations reads the annotations of an object of the newest state without decoding the rest of it; none if there is no
// such object. The map belongs to the caller.
func (h Handle) Annotations(key object.Key) (map[string]string, error) {
	if e := h.informer.state().at(key); e != nil {
		return e.annotations()
	}
	return nil, nil
}

// Meta returns the metadata of an object of the newest state, and whether there is
// one.
func (h Handle) Meta(key object.Key) (object.Meta, bool) {
	if e := h.informer.state().at(key); e != nil {
		return e.meta(), true
	}
	return object.Meta{}, false
}

// Trouble is as [SharedInformer.Trouble].
func (h Handle) Trouble() error { return h.informer.now().inTheWay() }

// Metadata returns the metadata of all objects in the newest state.
func (h Handle) Metadata() Snapshot[*metav1.PartialObjectMetadata] {
	return Snapshot[*metav1.PartialObjectMetadata]{h.informer.state()}
}
