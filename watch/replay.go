// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/observe"
	"github.com/setpoint-io/setpoint/wire"
)

// replayed is an object as the replay left it.
type replayed struct {
	uid     types.UID
	version object.Version
	content tree // nil: it is gone
}

const (
	// replayTurn is how long the server keeps one watch of a replay open. A server sends
	// what it remembers at once, and a bookmark two seconds before the end of a watch, by
	// which the replay knows that nothing is missing: after a second, that is.
	// Source: k8s.io/apiserver/pkg/storage/cacher, cacheWatcher.nextBookmarkTime.
	replayTurn = 3 * time.Second
	// replayPatience is how long a turn may take that the server does not end.
	replayPatience = 10 * time.Second
)

// replay tells of every step between two versions, as far as the server remembers them. It
// returns when that is done or cannot be done: what it has not told is found by comparing.
func (f *follower) replay(ctx context.Context, from, to object.Version) {
	f.replayed = map[object.Key]replayed{}
	for !from.AtLeast(to) {
		reached, err := f.replayOnce(ctx, from, to)
		switch {
		case ctx.Err() != nil:
			return
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			f.watch.log.Info("the server no longer has every step since the last run; telling what is different now", "kind", f.kind.String(), "since", string(from))
			return
		case err != nil:
			f.watch.log.Warn("the steps since the last run cannot be read; telling what is different now", "kind", f.kind.String(), "error", err)
			return
		case reached == from:
			return // the server had nothing more
		}
		from = reached
	}
}

// replayOnce reads one watch and returns how far it came.
func (f *follower) replayOnce(ctx context.Context, from, to object.Version) (object.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, replayTurn+replayPatience)
	defer cancel()
	w, err := f.watch.host.Client().Watch(ctx, f.resource, f.selection, client.WatchOptions{ResourceVersion: string(from), Timeout: replayTurn})
	if err != nil {
		return from, err
	}
	defer func() { _ = w.Close() }()
	for !from.AtLeast(to) {
		next, err := w.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded) {
			return from, nil
		}
		if err != nil {
			return from, err
		}
		version, err := f.replayEvent(ctx, w.Encoding, next)
		if err != nil {
			return from, err
		}
		if version.AtLeast(from) {
			from = version
		}
	}
	return from, nil
}

func (f *follower) replayEvent(ctx context.Context, encoding wire.Encoding, e wire.Event) (object.Version, error) {
	if e.Type == wire.Error {
		var status metav1.Status
		if err := encoding.Decode(e.Object, &status); err != nil {
			return "", fmt.Errorf("reading an error event: %w", err)
		}
		return "", &apierrors.StatusError{ErrStatus: status}
	}
	var o unstructured.Unstructured
	if err := encoding.Decode(e.Object, &o); err != nil {
		return "", fmt.Errorf("reading an event: %w", err)
	}
	version, err := object.ParseVersion(o.GetResourceVersion())
	if err != nil || e.Type == wire.Bookmark {
		return version, err
	}
	key := object.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
	if f.watch.excluded(key) {
		return version, nil
	}
	before, known := f.replayed[key]
	seen, had, err := f.watch.cursor.get(f.name, key)
	if err != nil {
		return "", err
	}
	if !known && had && object.Version(seen.Version).AtLeast(version) && seen.UID == o.GetUID() {
		return version, nil // it was told of: the cursor of the kind was behind that of the object
	}
	after := replayed{uid: o.GetUID(), version: version}
	change := observe.Change{Missed: true, New: o.Object}
	switch e.Type {
	case wire.Added:
		change.Verb, change.Old = event.Created, nil
	case wire.Modified:
		change.Verb, change.Old = event.Updated, before.content
	case wire.Deleted:
		change.Verb, change.Old, change.New = event.Deleted, o.Object, nil
	default:
		return "", fmt.Errorf("the server sent an event of the unknown type %q", e.Type)
	}
	if e.Type != wire.Deleted {
		after.content = o.Object
	}
	if change.Verb == event.Updated && change.Old == nil && had && seen.UID == after.uid {
		change.Classes = observe.Classes(digestOf(seen), observe.DigestOf(change.New, f.watch.cursor.key()))
	}
	f.replayed[key] = after
	f.tell(ctx, key, change, version, nil)
	if version.AtLeast(f.last) {
		f.last, f.replayedTo = version, version
	}
	return version, nil
}
