// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// How long to wait for an own write to appear before the server is asked about
// it. A watch delivers within milliseconds; what takes seconds is a connection
// that broke, a server that lags, or a write that the informer will never see.
const ownWriteWait = 5 * time.Second

// writes collects what one run wrote. A run may write from many goroutines.
type writes struct {
	mu  sync.Mutex
	all []client.Write
}

// Record implements client.Recorder.
func (w *writes) Record(write client.Write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, write)
}

func (w *writes) take() []client.Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// ownWrites holds back keys whose last run wrote something that the informers
// have not seen.
type ownWrites struct {
	controller *Controller
	patience   time.Duration // ownWriteWait, or what a test waits
	tasks      sync.WaitGroup

	mu      sync.Mutex
	waiting map[object.Key]string
}

func (o *ownWrites) init(c *Controller) {
	o.controller = c
	o.patience = ownWriteWait
	o.waiting = map[object.Key]string{}
}

// settle marks the key done once the informers have seen the writes: now, or from
// a goroutine of its own.
func (o *ownWrites) settle(ctx context.Context, key object.Key, all []client.Write) {
	unseen := o.unseen(all)
	if len(unseen) == 0 {
		o.controller.queue.Done(key)
		return
	}
	o.tasks.Go(func() {
		defer o.controller.queue.Done(key)
		defer o.note(key, "")
		for _, w := range unseen {
			o.note(key, w.String())
			if !w.settle(ctx, o.controller) {
				return // stopping
			}
		}
	})
}

func (o *ownWrites) note(key object.Key, what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if what == "" {
		delete(o.waiting, key)
		return
	}
	o.waiting[key] = what
}

// Waiting returns the keys that are held back, and the write of each that the
// informers have not seen yet.
func (c *Controller) Waiting() map[object.Key]string {
	c.own.mu.Lock()
	defer c.own.mu.Unlock()
	return maps.Clone(c.own.waiting)
}

// unseenWrite is a write that an informer has not seen.
type unseenWrite struct {
	client.Write
	informer cache.Handle
}

func (w unseenWrite) String() string {
	text := fmt.Sprintf("%s of %s %s to appear", w.Verb, w.Resource, w.Key)
	if w.Unknown {
		text += " (its answer was lost)"
	}
	return text
}

// unseen pairs the writes with the informers of their kinds, and leaves out what
// has been seen already. Of the writes that made a version of one kind only the
// newest counts: an informer sees versions in order.
func (o *ownWrites) unseen(all []client.Write) []unseenWrite {
	var list []unseenWrite
	for _, informer := range o.controller.informers {
		group, kind := informer.GroupKind()
		newest := -1
		for _, write := range all {
			if write.Resource.Group != group || write.Resource.Kind != kind {
				continue
			}
			w := unseenWrite{write, informer}
			if !write.Unknown && !write.Version.IsZero() {
				if newest >= 0 && list[newest].Version.AtLeast(write.Version) {
					continue
				}
				if newest >= 0 {
					list[newest] = w
					continue
				}
				newest = len(list)
			}
			list = append(list, w)
		}
	}
	// Most are seen by the time that the run has ended.
	left := list[:0]
	for _, w := range list {
		if !w.seen() {
			left = append(left, w)
		}
	}
	return left
}

// appears returns a channel that is closed once the informer has seen the write.
func (w *unseenWrite) appears() (<-chan struct{}, func()) {
	if w.Verb == "delete" {
		return w.informer.Gone(w.Key, w.UID)
	}
	return w.informer.Observed(w.Version)
}

func (w *unseenWrite) seen() bool {
	if w.Unknown {
		return false
	}
	if w.Verb == "update" && w.Version.IsZero() {
		return true // it changed nothing
	}
	appears, giveUp := w.appears()
	defer giveUp()
	select {
	case <-appears:
		return true
	default:
		return false
	}
}

// settle waits until the informer has seen the write, or cannot see it. It
// returns false if ctx ended first.
func (w *unseenWrite) settle(ctx context.Context, c *Controller) bool {
	if w.Unknown && !w.resolve(ctx, c) {
		return false
	}
	for asked := 0; ; asked++ {
		appears, giveUp := w.appears()
		timer := time.NewTimer(c.own.patience)
		select {
		case <-appears:
			timer.Stop()
			return true
		case <-ctx.Done():
			timer.Stop()
			giveUp()
			return false
		case <-timer.C:
			giveUp()
		}
		if asked == 0 {
			c.log.Warn("an own write has not appeared yet", "waiting", w.String(), "trouble", w.informer.Trouble())
		}
		if w.hidden(ctx, c) {
			return true
		}
	}
}

// hidden asks the server whether the write is one that the informer cannot see:
// one of an object that it does not select. As long as the informer should see
// it, acting on the informer's state would be acting on a past that this very
// controller has changed.
func (w *unseenWrite) hidden(ctx context.Context, c *Controller) bool {
	if !w.informer.Partial() || w.informer.Trouble() != nil {
		return false
	}
	if c.client == nil {
		return true
	}
	_, _, err := w.ask(ctx, c)
	return err == nil
}

// read gets the object's metadata from the server.
func (w *unseenWrite) read(ctx context.Context, c *Controller) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, ownWriteWait)
	defer cancel()
	return client.ForResource[*metav1.PartialObjectMetadata](c.client, w.Resource).Get(ctx, w.Key)
}

// resolve finds out what became of a write whose answer was lost, by asking until
// there is an answer. After it the write is one whose outcome is known: a version
// that the informer must reach, or an object that must be gone.
func (w *unseenWrite) resolve(ctx context.Context, c *Controller) bool {
	for pause := 100 * time.Millisecond; c.client != nil; pause = min(pause*2, ownWriteWait) {
		version, gone, err := w.ask(ctx, c)
		if err == nil {
			w.Unknown, w.Version = false, version
			if w.Verb = "update"; gone {
				w.Verb = "delete"
			}
			return true
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
	w.Unknown, w.Verb = false, "update"
	return ctx.Err() == nil
}

// ask reads from the server what the write may have left: the object, if its name
// is known, or else all objects of the namespace.
func (w *unseenWrite) ask(ctx context.Context, c *Controller) (version object.Version, gone bool, err error) {
	if w.Key.Name != "" {
		o, err := w.read(ctx, c)
		if apierrors.IsNotFound(err) {
			return "", true, nil
		}
		if err != nil {
			return "", false, err
		}
		version, err := object.ParseVersion(o.ResourceVersion)
		return version, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, 4*ownWriteWait)
	defer cancel()
	list, _, err := client.ForResource[*metav1.PartialObjectMetadata](c.client, w.Resource).
		List(ctx, client.Selection{Namespace: w.Key.Namespace, MetadataOnly: true})
	if err != nil {
		return "", false, err
	}
	for _, o := range list {
		v, err := object.ParseVersion(o.ResourceVersion)
		if err != nil {
			return "", false, err
		}
		if !version.AtLeast(v) {
			version = v
		}
	}
	return version, false, nil
}
