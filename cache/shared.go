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
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// SharedInformer is one handle for all that a program does with a kind. It reads from a
// current copy of the objects, which an informer keeps and whoever asks for the kind shares.
// Handlers and indexes are added to it, and it writes to the server. It is a small value that
// may be copied; all methods are safe for concurrent use.
//
// Each call of [Informer] takes a reference to the informer that it returns;
// [SharedInformer.Release] gives it back.
type SharedInformer[T object.Object] struct {
	informer *informer
	server   *client.Typed[T]
}

// Snapshot returns the newest state.
func (s SharedInformer[T]) Snapshot() Snapshot[T] {
	return Snapshot[T]{s.informer.store.current.Load()}
}

// Get returns an object of the newest state. The object is shared and read-only. If there is
// none, the error satisfies apierrors.IsNotFound. Before the informer has synced an object may
// be missing because it has not been listed yet: the error is a [NotSyncedError] then.
func (s SharedInformer[T]) Get(key object.Key) (T, error) {
	synced := s.informer.isSynced.Load() // before the state is read: the state may be the first whole one
	item := s.Snapshot().Get(key)
	if item.Exists() {
		return item.Object()
	}
	var none T
	if !synced {
		return none, s.informer.unsynced()
	}
	return none, &notFoundError{kind: s.informer.name, key: key}
}

// List decodes the objects of the newest state that a label selector matches; nil matches
// all. They are shared and read-only, and in no particular order. Before the informer has
// synced the error is a [NotSyncedError]. [Snapshot.Select] costs less where only some of many
// objects are needed, or only their metadata.
func (s SharedInformer[T]) List(selector labels.Selector) ([]T, error) {
	if !s.informer.isSynced.Load() {
		return nil, s.informer.unsynced()
	}
	return Objects(s.Snapshot().Select("", selector))
}

// All returns every object of the newest state.
func (s SharedInformer[T]) All() iter.Seq2[object.Key, Item[T]] { return s.Snapshot().All() }

// AddHandler adds a handler, at any time until the informer stops. It is first
// told of all objects there are.
func (s SharedInformer[T]) AddHandler(h Handler[T], o HandlerOptions) (*Registration, error) {
	return s.informer.addHandler(typed(h), o)
}

// Release gives the informer back. With the last reference it stops: its handlers
// are told nothing more, its readers keep what they read, and who asks the factory
// for its kind gets a new one. Who releases an informer uses it no longer.
func (s SharedInformer[T]) Release() { s.informer.release() }

// Synced returns a channel that is closed once the informer has had a whole state
// of its kind.
func (s SharedInformer[T]) Synced() <-chan struct{} { return s.informer.synced }

// WaitForSync waits until the informer has had a whole state of its kind. When
// ctx ends first, the error is a [NotSyncedError] that says what is in the way.
func (s SharedInformer[T]) WaitForSync(ctx context.Context) error { return s.informer.waitForSync(ctx) }

func (i *informer) waitForSync(ctx context.Context) error {
	select {
	case <-i.synced:
		return nil
	case <-ctx.Done():
	case <-i.ended:
	}
	select {
	case <-i.synced:
		return nil
	default:
	}
	why := i.whyNot()
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", why, ctx.Err())
	}
	return why
}

// Observed returns a channel that is closed once the informer has seen its kind
// up to a version, and a function that gives up waiting.
func (s SharedInformer[T]) Observed(v object.Version) (<-chan struct{}, func()) {
	return s.informer.versions.wait(v)
}

// Kind returns the plural of the kind, for people.
func (s SharedInformer[T]) Kind() string { return s.informer.name }

// Trouble returns what keeps the informer from being current, or nil: why it cannot watch,
// or an object that its transform fails for.
func (s SharedInformer[T]) Trouble() error { return s.informer.inTheWay() }

func (i *informer) inTheWay() error {
	if p := i.problem.Load(); p != nil {
		return p.err
	}
	return i.faultsError()
}

// Handle returns the informer without its type, for code that treats informers of
// all kinds alike.
func (s SharedInformer[T]) Handle() Handle { return Handle{s.informer} }

// Handle is an informer whose type is not known. It is comparable: two Handles are
// equal if they are of one informer.
type Handle struct{ informer *informer }

// Kind returns the plural of the kind, for people.
func (h Handle) Kind() string { return h.informer.name }

// GroupKind returns the kind's group and kind.
func (h Handle) GroupKind() (group, kind string) { return h.informer.kind.Group, h.informer.kind.Kind }

// WaitForSync is as [SharedInformer.WaitForSync].
func (h Handle) WaitForSync(ctx context.Context) error {
	return h.informer.waitForSync(ctx)
}

// Observed is as [SharedInformer.Observed].
func (h Handle) Observed(v object.Version) (<-chan struct{}, func()) {
	return h.informer.versions.wait(v)
}

// Gone returns a channel that is closed once the informer has seen that the object
// with this UID is gone or being deleted, and a function that gives up waiting. An
// empty UID is whatever object has the key.
func (h Handle) Gone(key object.Key, uid types.UID) (<-chan struct{}, func()) {
	return h.informer.waitGone(key, uid)
}

// Client returns the client that the informer reads with.
func (h Handle) Client() *client.Client { return h.informer.client }

// Partial reports whether the informer leaves out some objects of the kind: by
// namespace, labels or fields.
func (h Handle) Partial() bool { return h.informer.chosen.partial() }

// Meta returns the metadata of an object of the newest state, and whether there is
// one.
func (h Handle) Meta(key object.Key) (object.Meta, bool) {
	if e := h.informer.store.current.Load().at(key); e != nil {
		return e.meta(), true
	}
	return object.Meta{}, false
}

// Trouble is as [SharedInformer.Trouble].
func (h Handle) Trouble() error { return h.informer.inTheWay() }

// Metadata returns the metadata of all objects in the newest state.
func (h Handle) Metadata() Snapshot[*metav1.PartialObjectMetadata] {
	return Snapshot[*metav1.PartialObjectMetadata]{h.informer.store.current.Load()}
}

// notFoundError is made often, by reconciles of objects that are gone, and seldom
// read: its text is put together when somebody asks.
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
