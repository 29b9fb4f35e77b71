// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"iter"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// SharedInformer is the handle of a kind: it reads from the cache and writes to the server.
// Handlers and indexes are added to it. The cache is shared by all users of the same selection.
// A SharedInformer is a small value that may be copied; all methods are safe for concurrent use.
//
// Each call of [Informer] takes a reference to the informer that it returns;
// [SharedInformer.Release] gives it back.
type SharedInformer[T object.Object] struct {
	informer *informer
	server   *client.Typed[T]
}

// Snapshot returns the newest state.
func (s SharedInformer[T]) Snapshot() Snapshot[T] {
	return Snapshot[T]{s.informer.state()}
}

// Get returns an object of the newest state. The object is shared and read-only. If there is
// none, the error satisfies apierrors.IsNotFound. Before the informer has synced an object may
// be missing because it has not been listed yet: the error is a [NotSyncedError] then.
func (s SharedInformer[T]) Get(key object.Key) (T, error) {
	synced := s.informer.now().isSynced.Load() // before the state is read: the state may be the first whole one
	item := s.Snapshot().Get(key)
	if item.Exists() {
		return item.Object()
	}
	var none T
	if !synced {
		return none, s.informer.now().unsynced()
	}
	return none, &notFoundError{kind: s.informer.name, key: key}
}

// List decodes the objects of the newest state that a label selector matches; nil matches
// all. They are shared and read-only, and in no particular order. Before the informer has
// synced the error is a [NotSyncedError]. [Snapshot.Select] costs less where only some of many
// objects are needed, or only their metadata.
func (s SharedInformer[T]) List(selector labels.Selector) ([]T, error) {
	if !s.informer.now().isSynced.Load() {
		return nil, s.informer.now().unsynced()
	}
	return s.Snapshot().List("", selector)
}

// All returns every object of the newest state.
func (s SharedInformer[T]) All() iter.Seq2[object.Key, Item[T]] { return s.Snapshot().All() }

// AddHandler adds a handler, at any time until the informer stops. The handler first gets all
// objects that exist.
func (s SharedInformer[T]) AddHandler(h Handler[T], o HandlerOptions) (*Registration, error) {
	return s.informer.addHandler(typed(h), o)
}

// Release drops the reference to the informer. After Release, the SharedInformer must not be
// used. With the last reference the informer stops: its handlers get no more events. Objects
// and snapshots that were read stay valid.
func (s SharedInformer[T]) Release() { s.informer.release() }

// Synced returns a channel that is closed once the informer has listed its kind.
func (s SharedInformer[T]) Synced() <-chan struct{} { return s.informer.synced }

// WaitForSync waits until the informer has listed its kind. If ctx ends first, the error is a
// [NotSyncedError] with the reason.
func (s SharedInformer[T]) WaitForSync(ctx context.Context) error {
	return s.informer.now().waitForSync(ctx)
}

// Observed returns a channel that is closed once the informer has seen its kind up to a
// version, and a function that ends the wait.
func (s SharedInformer[T]) Observed(v object.Version) (<-chan struct{}, func()) {
	return s.informer.now().versions.wait(v)
}

// Kind returns the plural of the kind, for logs.
func (s SharedInformer[T]) Kind() string { return s.informer.name }

// Trouble returns why the informer is not current, or nil: it cannot watch, or its transform
// fails for an object.
func (s SharedInformer[T]) Trouble() error { return s.informer.now().inTheWay() }

func (i *informer) inTheWay() error {
	if p := i.problem.Load(); p != nil {
		return p.err
	}
	return i.faultsError()
}

// Handle returns the informer without its type, for code about informers of any kind.
func (s SharedInformer[T]) Handle() Handle { return Handle{s.informer} }

// notFoundError is made often, by reconciles of objects that are gone, and read seldom, so Error
// builds its text.
type notFoundError struct {
	kind string
	key  object.Key
}

func (e *notFoundError) Error() string { return fmt.Sprintf("%s %q not found", e.kind, e.key) }

// Status makes it an apierrors.APIStatus.
func (e *notFoundError) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: e.Error(), Details: &metav1.StatusDetails{Name: e.key.Name, Kind: e.kind},
	}
}
