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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// A watch is asked to end after a random time between this and twice this, so
// that the watches of many clients do not end together.
// Source: k8s.io/client-go/tools/cache, defaultMinWatchTimeout.
const minWatchTimeout = 5 * time.Minute

// shortWatch is how long a watch must last to count as one if it brings nothing.
// Source: k8s.io/client-go/tools/cache, handleAnyWatch.
const shortWatch = time.Second

// sink takes what a reflector reads. It is called by one goroutine.
type sink interface {
	replace(all []object.Object, version object.Version)
	put(o object.Object, version object.Version)
	remove(o object.Object, version object.Version)
	advance(version object.Version)
	// trouble is told of every failure, and of nil when things are well again.
	trouble(err error)
}

// reflector keeps a sink in step with a source.
type reflector struct {
	source source
	sink   sink
	server *pulse // of others that read from the same server; may be nil
	lost   bool   // the last try did not reach the server

	version  object.Version // up to which the sink has been told
	complete bool           // the sink has been given a whole state, at version
	forgot   bool           // the server does not know version any more
	noStream bool           // this cycle lists, the server has no watch list
	backoff  backoff

	lists, watches uint64
}

var (
	errShortWatch = errors.New("the server ended the watch at once and sent nothing")
	errRelist     = errors.New("the state must be listed again")
)

// run reads until ctx ends.
func (r *reflector) run(ctx context.Context) {
	for ctx.Err() == nil {
		reached := r.server.next()
		err := r.step(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if errors.Is(err, errRelist) {
			continue
		}
		r.sink.trouble(err)
		least := time.Duration(0)
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			least = time.Duration(seconds) * time.Second
		}
		// What another's success says of the server says nothing of a refusal.
		if r.lost = isConnection(class(err)); !r.lost {
			reached = nil
		}
		_ = r.backoff.wait(ctx, least, reached)
	}
}

// step does one thing: gets the whole state, or watches from where it stands.
func (r *reflector) step(ctx context.Context) error {
	if r.complete {
		return r.follow(ctx)
	}
	if !r.noStream {
		err := r.watchList(ctx)
		if err == nil || !refusesWatchList(err) {
			return err
		}
	}
	r.noStream = false // the next cycle tries the watch list again
	return r.list(ctx)
}

// refusesWatchList reports whether a server answered that it does not do watch
// lists, rather than that it cannot at the moment.
func refusesWatchList(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err)
}

// list gets the whole state by a list.
//
// The first list asks for the newest state there is (no version), not for any
// state (version 0) as client-go does. A server may be behind what this very
// process wrote before it was restarted, and a controller that acts on such a
// state makes things twice. The server answers from its watch cache all the same
// (consistent reads from cache, Kubernetes 1.31 and later). A later list must not
// be older than what is known.
func (r *reflector) list(ctx context.Context) error {
	options := client.ListOptions{}
	if !r.forgot {
		options.ResourceVersion = string(r.version)
	}
	r.lists++
	var all []object.Object
	text, err := r.source.list(ctx, options, func(o object.Object) error {
		all = append(all, o)
		return nil
	})
	if isExpired(err) || isTooLargeVersion(err) {
		// The server lost its past, or was set back to it. Ask for what there
		// is, at once.
		if r.forgot {
			return fmt.Errorf("listing: %w", err)
		}
		r.forgot = true
		return errRelist
	}
	if err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	version, err := object.ParseVersion(text)
	if err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	r.whole(all, version)
	return nil
}

// whole gives the sink a whole state.
func (r *reflector) whole(all []object.Object, version object.Version) {
	r.sink.replace(all, version)
	r.version, r.complete, r.forgot = version, true, false
	r.well()
}

// well notes that the server answers as it should.
func (r *reflector) well() {
	r.sink.trouble(nil)
	if r.lost {
		r.lost = false
		r.server.beat()
	}
}

// watchList gets the whole state as the first events of a watch, and goes on
// with that watch. The server sends a state that is no older than the moment it
// was asked, one object at a time, and then a bookmark that says that it was all.
func (r *reflector) watchList(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := r.watchOptions()
	options.SendInitialEvents = true
	options.ResourceVersion = ""
	if !r.forgot {
		options.ResourceVersion = string(r.version)
	}
	r.lists++
	w, err := r.source.watch(ctx, options)
	if err != nil {
		return r.mayForget(fmt.Errorf("listing by watch: %w", err))
	}
	defer func() { _ = w.close() }()
	state := map[object.Key]object.Object{}
	for {
		kind, o, err := w.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server ended the watch before it had sent the whole state")
			}
			return r.mayForget(fmt.Errorf("listing by watch: %w", err))
		}
		switch kind {
		case wire.Added, wire.Modified:
			state[object.KeyOf(o)] = o
			continue
		case wire.Deleted:
			delete(state, object.KeyOf(o))
			continue
		}
		if o.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
			continue
		}
		version, err := object.ParseVersion(o.GetResourceVersion())
		if err != nil {
			return fmt.Errorf("listing by watch: %w", err)
		}
		all := make([]object.Object, 0, len(state))
		for _, o := range state {
			all = append(all, o)
		}
		r.whole(all, version)
		return r.consume(ctx, w)
	}
}

// mayForget notes where the server does not know the version asked for.
func (r *reflector) mayForget(err error) error {
	if (isExpired(err) || isTooLargeVersion(err)) && !r.forgot {
		r.forgot = true
		return errRelist
	}
	return err
}

// follow watches from where the sink stands.
func (r *reflector) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := r.watchOptions()
	options.ResourceVersion = string(r.version)
	r.watches++
	w, err := r.source.watch(ctx, options)
	if err != nil {
		return r.afterWatch(err)
	}
	defer func() { _ = w.close() }()
	r.well()
	return r.consume(ctx, w)
}

func (r *reflector) watchOptions() client.WatchOptions {
	return client.WatchOptions{Timeout: minWatchTimeout + rand.N(minWatchTimeout)}
}

// consume passes on the events of a watch until it ends.
func (r *reflector) consume(ctx context.Context, w stream) error {
	began, events := time.Now(), 0
	for {
		kind, o, err := w.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				if events == 0 && time.Since(began) < shortWatch {
					return fmt.Errorf("watching: %w", errShortWatch)
				}
				return nil // its time was up; go on where it ended
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return r.afterWatch(err)
		}
		events++
		version, err := object.ParseVersion(o.GetResourceVersion())
		if err != nil {
			return r.afterWatch(&undecodable{err})
		}
		switch kind {
		case wire.Added, wire.Modified:
			r.sink.put(o, version)
		case wire.Deleted:
			r.sink.remove(o, version)
		case wire.Bookmark:
			r.sink.advance(version)
		}
		if version.AtLeast(r.version) {
			r.version = version
		}
	}
}

// afterWatch decides how to go on after a watch that failed. Where the place in
// the history is still good, the next watch resumes there: nothing is lost, and
// nothing needs to be listed.
func (r *reflector) afterWatch(err error) error {
	switch {
	case isExpired(err):
		// List at the last version first: another server, or this one's cache,
		// may well have a state that is newer.
		r.complete = false
		return errRelist
	case isTooLargeVersion(err):
		r.complete = false
	case isUndecodable(err):
		// What the event was is lost. The version has not moved past it, but a
		// watch from here would bring the same bytes again.
		r.complete = false
	}
	return fmt.Errorf("watching: %w", err)
}

// isTooLargeVersion reports whether the server says that the version asked for is
// in its future. Source of the cause and of the older message:
// k8s.io/apiserver/pkg/storage, NewTooLargeResourceVersionError, and
// k8s.io/client-go/tools/cache, isTooLargeResourceVersionError.
func isTooLargeVersion(err error) bool {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsTimeout(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	if details == nil {
		return false
	}
	for _, cause := range details.Causes {
		// Servers before 1.17.5 and those of 1.18.0 and 1.18.1 say it in words.
		if cause.Message == "Too large resource version" {
			return true
		}
	}
	return false
}
