// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/pause"
	"github.com/setpoint-io/setpoint/object"
)

// unseenWrite is a write that an informer has not seen. It is one of three: open, whose
// outcome is not known; a delete, seen when the object is gone, begins to go, or has been
// replaced; or a version, seen when the informer has reached it.
type unseenWrite struct {
	client.Write
	informer cache.Handle
	// leaves: the informer does not select the object as the write left it. Its version may
	// never come, and to the informer the write is a delete.
	leaves bool
	// removed: the server does not have the object any more. It is seen when the informer does not
	// show it, and not when its deletion begins, which may have been long before.
	removed bool
	// stays: the informer selects the object as the write left it, for certain.
	stays bool
}

// The verbs of a client.Write that are not a version.
const (
	verbDelete           = "delete"
	verbDeleteCollection = "deletecollection"
)

func (w *unseenWrite) open() bool    { return w.Unknown || w.Verb == verbDeleteCollection }
func (w *unseenWrite) deletes() bool { return !w.open() && (w.Verb == verbDelete || w.leaves) }

func (w *unseenWrite) String() string {
	switch {
	case w.Verb == verbDeleteCollection:
		return fmt.Sprintf("%s of %s in %q to be looked up", w.Verb, w.Resource, w.Key.Namespace)
	case w.Unknown:
		return fmt.Sprintf("%s of %s %s to be looked up (its answer was lost)", w.Verb, w.Resource, w.Key)
	case w.leaves:
		return fmt.Sprintf("%s of %s %s to have it left out", w.Verb, w.Resource, w.Key)
	case w.Version.IsZero():
		return fmt.Sprintf("%s of %s %s to appear", w.Verb, w.Resource, w.Key)
	}
	return fmt.Sprintf("%s of %s %s at %s to appear", w.Verb, w.Resource, w.Key, w.Version)
}

// seen returns a channel that is closed once the informer has seen the write, and a
// function that gives up waiting.
func (w *unseenWrite) seen() (<-chan struct{}, func()) {
	switch {
	case w.removed:
		return w.informer.Removed(w.Key, w.UID)
	case w.deletes():
		return w.informer.Gone(w.Key, w.UID)
	}
	// A version of zero is a write that changed nothing, which all have seen.
	return w.informer.Observed(w.Version)
}

func (w *unseenWrite) isSeen() bool {
	seen, giveUp := w.seen()
	defer giveUp()
	select {
	case <-seen:
		return true
	default:
		return false
	}
}

// needNot asks the server whether the informer can be acted upon though it has not
// seen the write: because it shows of the object just what the server has, or because
// it does not select the object. Where it does neither, what is waited for becomes
// what the server has.
func (w *unseenWrite) needNot(ctx context.Context) bool {
	// Where only fields that are not known here say whether an object is selected, one
	// that is not shown may be. An informer that is behind shows nothing of it either.
	hidden := w.informer.Partial() && w.informer.Trouble() == nil
	live, exists, err := w.read(ctx)
	if err != nil {
		return false
	}
	have, shown := w.informer.Meta(w.Key)
	selected := true
	if exists {
		var certain bool
		selected, certain = w.informer.Selects(live)
		hidden = !selected || !certain && !w.stays && hidden
	}
	switch {
	case !exists && !shown:
		// Either it came and went, which the informer is going to show, or a server
		// that was set back has lost it.
		return hidden || w.leaves || w.lost(ctx)
	case !exists:
		w.Verb, w.UID, w.Version, w.removed = verbDelete, have.UID, "", true
		return false
	case shown && have.UID == live.UID && have.Version == live.Version:
		return true
	case !shown && hidden:
		return true
	case w.deletes() && live.Deleting(), w.leaves && !selected:
		return false
	}
	// A server that was set back will not come to a version that it has lost, and has
	// again what was deleted; and a name that is free may be taken.
	if w.deletes() || !live.Version.AtLeast(w.Version) {
		w.Verb, w.UID, w.Version, w.leaves, w.stays, w.removed = "update", live.UID, live.Version, false, false, false
	}
	return false
}

// lost reports whether the server has not come to the write's version, or not again.
func (w *unseenWrite) lost(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askAfter)
	defer cancel()
	at, err := w.list(ctx, client.Selection{Namespace: w.Key.Namespace}, 1, func(object.Meta) {})
	return err == nil && !at.AtLeast(w.Version)
}

// outcome finds out what became of an open write, by asking until there is an answer.
// What it returns is to be waited for: a version that the informer must reach, objects
// that must be gone. It returns false if ctx ended first. A server that carries out a
// write after it has answered questions about it is not caught.
func (w *unseenWrite) outcome(ctx context.Context, log *slog.Logger) (now []unseenWrite, known bool) {
	for wait, said := 100*time.Millisecond, false; ; wait = min(2*wait, askAfter) {
		now, err := w.ask(ctx)
		if err == nil {
			return now, true
		}
		if !said && ctx.Err() == nil {
			said = true
			log.Warn("what became of a write cannot be read yet; its key is held back and the server asked again",
				"waiting", w.String(), "error", err)
		}
		if !pause.For(ctx, wait) {
			return nil, false
		}
	}
}

// ask reads from the server what an open write may have left: the object, if its name
// is known, or else all objects of the namespace.
func (w *unseenWrite) ask(ctx context.Context) ([]unseenWrite, error) {
	if w.Key.Name == "" {
		return w.askForAll(ctx)
	}
	live, exists, err := w.read(ctx)
	if err != nil {
		return nil, err
	}
	if !exists {
		return []unseenWrite{w.as(verbDelete, object.Meta{Key: w.Key, UID: w.UID})}, nil
	}
	now := w.as("update", live)
	now.stays, now.leaves = tells(w.informer.Selects(live))
	return []unseenWrite{now}, nil
}

// askForAll lists what there is. The informer must reach the newest version of all,
// and show nothing that is not there: if this was a deletecollection, it is gone.
func (w *unseenWrite) askForAll(ctx context.Context) ([]unseenWrite, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*askAfter)
	defer cancel()
	// What the informer shows that the list does not was deleted, if it is read before.
	shown := w.informer.Metadata()
	var newest object.Meta
	there := map[types.UID]bool{}
	_, err := w.list(ctx, client.Selection{Namespace: w.Key.Namespace}, 0, func(live object.Meta) {
		there[live.UID] = true
		if newest.Version.IsZero() || !newest.Version.AtLeast(live.Version) {
			newest = live
		}
	})
	if err != nil {
		return nil, err
	}
	var all []unseenWrite
	if w.Verb == verbDeleteCollection {
		for _, item := range shown.All() {
			if m := item.Meta(); !there[m.UID] && (w.Key.Namespace == "" || w.Key.Namespace == m.Namespace) {
				all = append(all, w.as(verbDelete, m))
			}
		}
	}
	if len(there) > 0 {
		all = append(all, w.as("update", newest))
	}
	return all, nil
}

// as returns the write as one whose outcome is known.
func (w *unseenWrite) as(verb string, m object.Meta) unseenWrite {
	known := *w
	known.leaves, known.stays = false, false
	known.Unknown, known.Verb, known.Key, known.UID, known.Version = false, verb, m.Key, m.UID, m.Version
	if known.removed = verb == verbDelete; known.removed {
		known.Version = ""
	}
	return known
}
