// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/pause"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/observe"
	"github.com/setpoint-io/setpoint/wire"
)

// replayed is an object after its last step in a replay.
type replayed struct {
	uid     types.UID
	version object.Version
	there   bool           // otherwise it is gone
	content tree           // of what is there, while the replay lasts and of so many objects
	digest  observe.Digest // of what is there and whose content is not kept
}

func (r replayed) seen() journal.Seen {
	return journal.Seen{UID: r.uid, Version: string(r.version), Digest: r.digest}
}

const (
	// replayContents is of how many objects a replay keeps the content, to compare it with the
	// next step. Of other objects only the classes of a step are known: a server may remember a
	// hundred thousand steps.
	replayContents = 2000
	// replayTurn is how long the server keeps one watch of a replay open. A server sends
	// what it remembers at once, and a bookmark two seconds before the end of a watch, by
	// which the replay knows that nothing is missing: after a second, that is.
	// Source: k8s.io/apiserver/pkg/storage/cacher, cacheWatcher.nextBookmarkTime.
	replayTurn = 3 * time.Second
	// replayPatience is how long a turn may take that the server does not end.
	replayPatience = 10 * time.Second
	// replayTries is how often in a row a turn may fail or bring nothing, with a pause
	// after each, the first as long as replayPause and each twice the one before.
	replayTries = 6
	replayPause = 100 * time.Millisecond
	// replayQuiet is how many of these tries are not worth a warning: they take some 10 s.
	replayQuiet = 2
)

// replay reports every step between two versions, as far as the server remembers them, and
// returns whether it came so far. Changes that it missed are found by comparing.
func (f *follower) replay(ctx context.Context, from, to object.Version) bool {
	f.replayed, f.contents = map[object.Key]replayed{}, 0
	f.complete(from)
	for tries := 0; !from.AtLeast(to); tries++ {
		newest := f.newest
		reached, err := f.replayOnce(ctx, from, to)
		switch {
		case reached != from || f.newest != newest:
			from, tries = reached, 0
		case err == nil:
			err = errNoSteps
		}
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			continue
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			f.watch.log.Info("the server no longer has every step since the last run; comparing the states instead", "kind", f.kind.String(), "since", string(from))
			return false
		case tries == replayTries || !passing(err):
			f.watch.log.Warn("the steps since the last run cannot be read; comparing the states instead", "kind", f.kind.String(), "error", err)
			return false
		}
		level := slog.LevelDebug
		if tries == replayQuiet {
			level = slog.LevelWarn
		}
		f.watch.log.Log(ctx, level, "reading the steps since the last run again", "kind", f.kind.String(), "since", string(from), "attempt", tries+1, "error", err)
		pause.For(ctx, replayPause<<tries)
	}
	return true
}

var errNoSteps = errors.New("the server sends none, and does not say that there are none")

// passing reports whether an error may pass by itself. Errors by which a server refuses a request
// do not.
func passing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}

// replayOnce reads one watch and returns the version up to which it has read all steps. A
// server may have made several at one version: only a later one or a bookmark says that there are
// no more. Where the watch breaks before, the next turn begins before them.
func (f *follower) replayOnce(ctx context.Context, from, to object.Version) (object.Version, error) {
	// The deadline is for the watch alone. Events that have arrived are submitted however long that takes.
	watching, cancel := context.WithTimeout(ctx, replayTurn+replayPatience)
	defer cancel()
	w, err := f.watch.host.Client().Watch(watching, f.resource, f.selection, client.WatchOptions{ResourceVersion: string(from), Timeout: replayTurn})
	if err != nil {
		return from, err
	}
	defer func() { _ = w.Close() }()
	for newest := from; ; {
		next, err := w.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded) {
			if newest.AtLeast(to) {
				return to, nil // further steps at that version are found by comparing
			}
			return from, nil
		}
		if err != nil {
			return from, err
		}
		version, err := f.replayEvent(ctx, w.Encoding, next, to)
		switch {
		case err != nil:
			return from, err
		case version.Compare(to) > 0 || next.Type == wire.Bookmark && version == to:
			f.complete(to)
			return to, nil
		case next.Type == wire.Bookmark && version.AtLeast(newest):
			from, newest = version, version
			f.complete(version)
		case version.Compare(newest) <= 0:
		default:
			from, newest = newest, version
		}
	}
}

// replayEvent reports an event, and returns its version. Events newer than to are left to the
// informer: it would not notice the deletion of an object that only the replay has seen.
func (f *follower) replayEvent(ctx context.Context, encoding wire.Encoding, e wire.Event, to object.Version) (object.Version, error) {
	if e.Type == wire.Error {
		var status metav1.Status
		if err := encoding.Decode(e.Object, &status); err != nil {
			return "", fmt.Errorf("reading an error event: %w", err)
		}
		return "", &apierrors.StatusError{ErrStatus: status}
	}
	o, err := f.decode(encoding, e.Object)
	if err != nil {
		return "", fmt.Errorf("reading an event: %w", err)
	}
	version, err := object.ParseVersion(o.GetResourceVersion())
	if err != nil || e.Type == wire.Bookmark || !to.AtLeast(version) {
		return version, err
	}
	key := object.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
	if f.watch.excluded(key) {
		return version, nil
	}
	before, known := f.replayed[key]
	if known && before.version.AtLeast(version) {
		return version, nil // a turn that was cut comes again
	}
	seen, had, err := f.watch.cursor.get(f.name, key)
	if err != nil {
		return "", err
	}
	if !known && had && object.Version(seen.Version).AtLeast(version) {
		return version, nil // it was published: the cursor of the kind was behind that of the object
	}
	if !known && !had && e.Type == wire.Deleted {
		return version, nil // so was this, and the journal has forgotten the object since
	}
	after := replayed{uid: o.GetUID(), version: version, there: e.Type != wire.Deleted}
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
	f.keep(&after, before, change.New)
	troubles := seen.Trouble
	if known {
		troubles = "" // they went with the first step
		seen, had = before.seen(), before.there && before.content == nil
	}
	if change.Verb == event.Updated && had {
		if state := f.lastState(key, seen); state != nil {
			change.Old, change.Kept = state, true
		}
	}
	switch {
	case change.Verb != event.Updated || !had:
	case seen.UID != after.uid:
		change.Verb = event.Replaced // an earlier run did not come so far
	default:
		change.Classes = observe.Classes(seen.Digest, f.watch.cursor.digest(change.New))
	}
	f.replayed[key] = after
	f.reach(version)
	f.replayedTo = f.newest
	f.report(ctx, key, change, troubles, f.last, nil)
	return version, nil
}

// decode decodes an object of the kind, as the informer does.
func (f *follower) decode(encoding wire.Encoding, raw []byte) (o unstructured.Unstructured, err error) {
	if encoding != wire.Protobuf {
		return o, encoding.Decode(raw, &o)
	}
	if o.Object, err = f.messages.DecodeTreeLazily(raw); err != nil {
		return o, err
	}
	o.SetGroupVersionKind(f.resource.GroupVersionKind())
	return o, nil
}

// keep keeps the content of an object, or at least its digest, to compare with its next step.
func (f *follower) keep(after *replayed, before replayed, content tree) {
	if before.content != nil {
		f.contents--
	}
	switch {
	case content == nil:
	case f.contents < replayContents:
		f.contents++
		after.content = content
	default:
		after.digest = f.watch.cursor.digest(content)
	}
}
