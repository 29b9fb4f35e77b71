// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Waits between attempts to reach the API server: the first is short because a server
// that drops a watch is usually there, the last short enough that the simulation is back
// within seconds.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 2 * time.Second
)

// feed is one kind of object to follow. The functions are called by one goroutine.
type feed[T any] struct {
	what    string
	list    func(context.Context, metav1.ListOptions) (items []T, version string, err error)
	watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
	options metav1.ListOptions
	replace func([]T)               // all that there is
	change  func(item T, gone bool) // one is new, or changed, or gone
}

// follow lists and watches until ctx ends, whatever the server does meanwhile. It
// logs the loss of the server once, and once that it is back.
func follow[T any](ctx context.Context, f feed[T], log *slog.Logger) {
	wait, lost, version := firstWait, false, ""
	for ctx.Err() == nil {
		begun := time.Now()
		next, err := f.once(ctx, version, func() {
			if lost {
				log.Warn("the API server is back", "following", f.what)
			}
			wait, lost = firstWait, false
		})
		version = next
		// A watch ends after minutes. One that ends at once is no reason for a warning,
		// nor for a new watch without a pause.
		if ctx.Err() != nil || err == nil && time.Since(begun) > lastWait {
			continue
		}
		if err != nil && !lost && wait > firstWait {
			log.Warn("the API server does not answer; trying again until it does", "following", f.what, "err", err)
			lost = true
		}
		sleep(ctx, wait/2+rand.N(wait))
		wait = min(2*wait, lastWait)
	}
}

// once lists, unless it has a version to go on from, and watches until the watch
// ends. It returns the version to go on from, "" to list again.
func (f feed[T]) once(ctx context.Context, version string, works func()) (string, error) {
	if version == "" {
		items, listed, err := f.list(ctx, f.options)
		if err != nil {
			return "", fmt.Errorf("listing %s: %w", f.what, err)
		}
		works()
		f.replace(items)
		version = listed
	}

	options := f.options
	options.ResourceVersion = version
	options.AllowWatchBookmarks = true
	// As client-go's reflectors do it: five to ten minutes, so that connections
	// spread over servers that come and go.
	options.TimeoutSeconds = new(int64(300 + rand.IntN(300)))
	w, err := f.watch(ctx, options)
	if err != nil {
		return after(version, err), fmt.Errorf("watching %s: %w", f.what, err)
	}
	defer w.Stop()
	works()
	for event := range w.ResultChan() {
		switch event.Type {
		case watch.Bookmark: // brings a version and nothing else
		case watch.Error:
			err := apierrors.FromObject(event.Object)
			return after(version, err), fmt.Errorf("watching %s: %w", f.what, err)
		case watch.Added, watch.Modified, watch.Deleted:
			item, ok := event.Object.(T)
			if !ok {
				return "", fmt.Errorf("watching %s: got a %T", f.what, event.Object)
			}
			f.change(item, event.Type == watch.Deleted)
		}
		if m, err := meta.Accessor(event.Object); err == nil {
			version = m.GetResourceVersion()
		}
	}
	return version, nil
}

// after returns the version to go on from after err. After a refusal by the server, such
// as that the version is too old, a new list is needed; where it was not reached, or had
// no time, the version is still good.
func after(version string, err error) string {
	reason := apierrors.ReasonForError(err)
	if reason == metav1.StatusReasonUnknown || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) {
		return version
	}
	return ""
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
