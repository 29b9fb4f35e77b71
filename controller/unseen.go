// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// unseenWrite is a write that an informer has not seen. It is one of three: open, of
// which nobody knows what it did; a delete, seen when the object is gone, begins to
// go, or has been replaced; or a version, seen when the informer has reached it.
type unseenWrite struct {
	client.Write
	informer cache.Handle
}

// The verbs of a client.Write that are not a version.
const (
	verbDelete           = "delete"
	verbDeleteCollection = "deletecollection"
)

func (w *unseenWrite) open() bool    { return w.Unknown || w.Verb == verbDeleteCollection }
func (w *unseenWrite) deletes() bool { return !w.open() && w.Verb == verbDelete }

func (w *unseenWrite) String() string {
	switch {
	case w.Verb == verbDeleteCollection:
		return fmt.Sprintf("%s of %s in %q to be looked up", w.Verb, w.Resource, w.Key.Namespace)
	case w.Unknown:
		return fmt.Sprintf("%s of %s %s to be looked up (its answer was lost)", w.Verb, w.Resource, w.Key)
	case w.Version.IsZero():
		return fmt.Sprintf("%s of %s %s to appear", w.Verb, w.Resource, w.Key)
	}
	return fmt.Sprintf("%s of %s %s at %s to appear", w.Verb, w.Resource, w.Key, w.Version)
}

// seen returns a channel that is closed once the informer has seen the write, and a
// function that gives up waiting.
func (w *unseenWrite) seen() (<-chan struct{}, func()) {
	if w.deletes() {
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
func (w *unseenWrite) needNot(ctx context.Context, c *Controller) bool {
	// Where only fields that are not known here say whether an object is selected, one
	// that is not shown may be. An informer that is behind shows nothing of it either.
	hidden := w.informer.Partial() && w.informer.Trouble() == nil
	live, exists, err := w.read(ctx, c)
	if err != nil {
		return false
	}
	have, shown := w.informer.Meta(w.Key)
	if exists {
		selected, certain := w.informer.Selects(live)
		hidden = !selected || !certain && hidden
	}
	switch {
	case !exists && !shown:
		// Either it came and went, which the informer is going to show, or a server
		// that was set back has lost it.
		return hidden || w.lost(ctx, c)
	case !exists:
		w.Verb, w.UID, w.Version = verbDelete, have.UID, ""
		return false
	case shown && have.UID == live.UID && have.Version == live.Version:
		return true
	case !shown && hidden:
		return true
	case w.deletes() && live.Deleting():
		return false
	}
	// A server that was set back will not come to a version that it has lost, and has
	// again what was deleted; and a name that is free may be taken.
	if w.deletes() || !live.Version.AtLeast(w.Version) {
		w.Verb, w.UID, w.Version = "update", live.UID, live.Version
	}
	return false
}

// lost reports whether the server has not come to the write's version, or not again.
func (w *unseenWrite) lost(ctx context.Context, c *Controller) bool {
	ctx, cancel := context.WithTimeout(ctx, askAfter)
	defer cancel()
	list, err := w.reader(c).List(ctx, w.Resource, client.Selection{Namespace: w.Key.Namespace, MetadataOnly: true, WithoutManagedFields: true},
		client.ListOptions{PageSize: 1}, func(wire.Encoding, []byte) error { return nil })
	if err != nil {
		return false
	}
	at, err := object.ParseVersion(list.ResourceVersion)
	return err == nil && !at.AtLeast(w.Version)
}

// outcome finds out what became of an open write, by asking until there is an answer.
// What it returns is to be waited for: a version that the informer must reach, objects
// that must be gone. It returns false if ctx ended first. A server that carries out a
// write after it has answered questions about it is not caught.
func (w *unseenWrite) outcome(ctx context.Context, c *Controller) (now []unseenWrite, known bool) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, askAfter) {
		now, err := w.ask(ctx, c)
		if err == nil {
			return now, true
		}
		if !pause(ctx, wait) {
			return nil, false
		}
	}
}

// pause returns false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ask reads from the server what an open write may have left: the object, if its name
// is known, or else all objects of the namespace.
func (w *unseenWrite) ask(ctx context.Context, c *Controller) ([]unseenWrite, error) {
	if w.Key.Name == "" {
		return w.askForAll(ctx, c)
	}
	live, exists, err := w.read(ctx, c)
	if err != nil {
		return nil, err
	}
	if !exists {
		return []unseenWrite{w.as(verbDelete, object.Meta{Key: w.Key, UID: w.UID})}, nil
	}
	return []unseenWrite{w.as("update", live)}, nil
}

// askForAll lists what there is. The informer must reach the newest version of all,
// and show nothing that is not there: if this was a deletecollection, it is gone.
func (w *unseenWrite) askForAll(ctx context.Context, c *Controller) ([]unseenWrite, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*askAfter)
	defer cancel()
	// What the informer shows that the list does not was deleted, if it is read before.
	shown := cache.SharedInformer[*metav1.PartialObjectMetadata](w.informer).Snapshot()
	list, _, err := client.ForResource[*metav1.PartialObjectMetadata](w.reader(c), w.Resource).
		List(ctx, client.Selection{Namespace: w.Key.Namespace, MetadataOnly: true, WithoutManagedFields: true})
	if err != nil {
		return nil, err
	}
	var newest object.Meta
	there := map[types.UID]bool{}
	for _, o := range list {
		live, err := metaOf(o)
		if err != nil {
			return nil, err
		}
		there[live.UID] = true
		if newest.Version.IsZero() || !newest.Version.AtLeast(live.Version) {
			newest = live
		}
	}
	var all []unseenWrite
	if w.Verb == verbDeleteCollection {
		for _, item := range shown.All() {
			if m := item.Meta(); !there[m.UID] && (w.Key.Namespace == "" || w.Key.Namespace == m.Namespace) {
				all = append(all, w.as(verbDelete, m))
			}
		}
	}
	if len(list) > 0 {
		all = append(all, w.as("update", newest))
	}
	return all, nil
}

// as returns the write as one whose outcome is known.
func (w *unseenWrite) as(verb string, m object.Meta) unseenWrite {
	known := *w
	known.Unknown, known.Verb, known.Key, known.UID, known.Version = false, verb, m.Key, m.UID, m.Version
	if verb == verbDelete {
		known.Version = ""
	}
	return known
}

// reader is the client that reads what became of the write: the controller's own where it
// has one for the server that was written to, or else the one that wrote. So there always
// is one, whether somebody thought of giving the controller a client or not.
func (w *unseenWrite) reader(c *Controller) *client.Client {
	if c.client != nil && c.client.Server() == w.Client.Server() {
		return c.client
	}
	return w.Client
}

// read gets the object's metadata from the server.
func (w *unseenWrite) read(ctx context.Context, c *Controller) (m object.Meta, exists bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askAfter)
	defer cancel()
	o, err := client.ForResource[*metav1.PartialObjectMetadata](w.reader(c), w.Resource).Get(ctx, w.Key)
	if apierrors.IsNotFound(err) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	m, err = metaOf(o)
	return m, err == nil, err
}

// metaOf is object.MetaOf for who cannot go on without a version.
func metaOf(o *metav1.PartialObjectMetadata) (object.Meta, error) {
	if _, err := object.ParseVersion(o.ResourceVersion); err != nil {
		return object.Meta{}, err
	}
	return object.MetaOf(o), nil
}
