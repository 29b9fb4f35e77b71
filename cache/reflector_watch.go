// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// minWatchTimeout is the least timeout of a watch. The timeout is a random time up to twice
// that, so that the watches of many clients do not end together.
// Source: k8s.io/client-go/tools/cache, defaultMinWatchTimeout.
const minWatchTimeout = 5 * time.Minute

// shortWatch is how long a watch without events must last to count as a working one.
// Source: k8s.io/client-go/tools/cache, handleAnyWatch.
const shortWatch = time.Second

// follow watches from the last version that is complete. Changes that the sink already has
// come again then, and change nothing.
func (r *reflector) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := r.watchOptions()
	options.ResourceVersion = string(r.resume)
	r.sink.restarted(rewatched, r.why)
	w, err := r.source.watch(ctx, options)
	if err != nil {
		return r.afterWatch(err, apierrors.IsBadRequest(err) || apierrors.IsInvalid(err))
	}
	defer func() { _ = w.close() }()
	return r.consume(ctx, w)
}

func (r *reflector) watchOptions() client.WatchOptions {
	return client.WatchOptions{
		Timeout: minWatchTimeout + rand.N(minWatchTimeout), NoBookmarks: r.noBookmarks, BeforeRead: r.sink.flush, Gather: r.gathers,
	}
}

// gathers is called by the watch, before it waits for events.
func (r *reflector) gathers() time.Duration {
	if r.gather == nil || !r.following {
		return 0
	}
	return r.gather()
}

// consume passes on the events of a watch until it ends.
func (r *reflector) consume(ctx context.Context, w stream) error {
	works := newProof(r.well)
	began, news := time.Now(), false
	r.following = true
	defer func() {
		r.following = false
		r.sink.flush()
		works.end()
		// Only what reaches the server from now on counts.
		r.reached = r.server.next()
		if time.Since(began) >= backoffMost {
			r.backoff.reset()
		}
	}()
	for {
		kind, f, err := w.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				if !news && time.Since(began) < shortWatch {
					return fmt.Errorf("watching: %w", errShortWatch)
				}
				return nil // the watch reached its timeout; the next one continues
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			var status apierrors.APIStatus
			return r.afterWatch(err, errors.As(err, &status)) // an error event of any sort
		}
		version, err := object.ParseVersion(string(f.head.ResourceVersion))
		// A watch sends changes in order. An older change has come before, and later ones
		// may have undone it. Another change may have the version of the last one.
		if err == nil && version.Compare(r.version) < 0 {
			continue
		}
		if err == nil {
			switch kind {
			case wire.Added, wire.Modified:
				err = r.sink.put(f, version)
			case wire.Deleted:
				err = r.sink.remove(f, version)
			case wire.Bookmark:
				r.sink.advance(version)
			}
		}
		if err != nil {
			return r.afterWatch(&undecodable{err}, true)
		}
		isNews := version != r.version
		r.advance(kind, version)
		if isNews && !news {
			news = true
			works.given()
		}
	}
}

// advance notes up to which version the sink has changes. A version is complete when a later
// one or a bookmark has come, since a server may make several changes at one version: etcd
// deletes all keys of a lease in one revision.
func (r *reflector) advance(kind string, version object.Version) {
	switch {
	case kind == wire.Bookmark:
		r.resume = version
	case version != r.version:
		r.resume = r.version
	}
	r.version = version
}

// afterWatch decides what follows a watch that failed. If the server still knows the version,
// the next watch resumes there without a list. ofPlace means that the failure may come from
// that place in the history: the server answered, and neither its load nor the connection
// explains the answer.
func (r *reflector) afterWatch(err error, ofPlace bool) error {
	switch {
	case isExpired(err):
		// The next list is at the last version: another server, or the cache of this one,
		// may have a newer state. The list comes at once, but not if a version expired
		// shortly before: where each state expires as soon as it is read, client and
		// server would do nothing else than to read states.
		r.complete, r.why = false, err
		before := r.expired
		if r.expired = time.Now(); r.expired.Sub(before) > backoffReset {
			return errRelist
		}
	case isTooLargeVersion(err):
		r.complete = false
	case isUndecodable(err):
		// The change is unknown, and a watch from this version would bring the same bytes
		// again.
		r.complete = false
	case ofPlace && r.failures.recur(r.version):
		// A server may have an object in its history that it cannot send. It then breaks
		// each watch at that place.
		r.complete = false
	}
	return fmt.Errorf("watching: %w", err)
}

// failures counts watches that failed at one version.
type failures struct {
	at    object.Version
	times int
}

// recurring is how many watches may fail at one version before the state is listed again.
const recurring = 3

// recur counts a failure at a version, and reports whether the state must be listed again.
func (f *failures) recur(at object.Version) bool {
	if f.at != at {
		f.at, f.times = at, 0
	}
	f.times++
	if f.times < recurring {
		return false
	}
	f.times = 0
	return true
}
