// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/object"
)

// longestAsked is the longest wait that a server can ask for in an error event. The client has
// the same bound for the header and the body of an answer.
const longestAsked = time.Minute

// sink takes what a reflector reads. One goroutine calls it.
type sink interface {
	// begin starts a whole state: calls of add and omit follow, and then whole or abandon.
	// restored is set where the server may have been restored to an older state, after
	// which two states of an object may have the same version.
	begin(restored bool)
	add(f *frame) error
	omit(f *frame)
	whole(version object.Version)
	abandon()

	// put and remove may be called with a change more than once. The sink may keep changes back
	// until flush.
	put(f *frame, version object.Version) error
	remove(f *frame, version object.Version) error
	// flush is called before the reflector waits for the server, and when a watch has ended.
	flush()
	// advance means that put and remove had all changes up to the version.
	advance(version object.Version)
	// trouble is called with every failure, and with nil when the reflector works again.
	trouble(err error)
	// restarted is called when a list or a watch begins again, with the reason.
	restarted(what restart, why error)
}

// restart is what a reflector begins again.
type restart int

const (
	relisted restart = iota
	rewatched
)

// reflector keeps a sink in step with a source.
type reflector struct {
	source source
	sink   sink
	server *pulse // of others that read from the same server; may be nil

	// lost is set when the server cannot be reached or a connection breaks, until a request
	// succeeds.
	lost bool
	// reached is closed when another informer reaches the server after the last try began,
	// or after the last watch broke.
	reached <-chan struct{}

	version  object.Version // of the newest change that the sink has
	resume   object.Version // up to which the sink has every change
	complete bool           // the sink has a whole state
	forgot   bool           // the server no longer knows version
	pageSize int64          // of lists at no version; 0: all in one
	// noBookmarks makes watches without bookmarks, and so no watch lists.
	noBookmarks bool
	// gather returns how long changes may wait before they are read; nil is not at all.
	gather    func() time.Duration
	following bool      // the state is whole, and changes follow
	expired   time.Time // when the server last answered that a version has expired
	failures  failures  // of watches, at one version
	why       error     // the last failure; nil after a watch that reached its timeout
	backoff   backoff
}

var (
	errShortWatch = errors.New("the server ended the watch at once and sent nothing new")
	errRelist     = errors.New("the state must be listed again")
	errNoEnd      = errors.New("the server ended the watch before it had sent the whole state")
)

// run reads until ctx ends.
func (r *reflector) run(ctx context.Context) {
	for ctx.Err() == nil {
		r.reached = r.server.next()
		err := r.step(ctx)
		if err == nil || ctx.Err() != nil {
			r.why = nil
			continue
		}
		if errors.Is(err, errRelist) {
			continue // r.why has the reason
		}
		r.why = err
		r.sink.trouble(err)
		least := time.Duration(0)
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			least = min(time.Duration(seconds)*time.Second, longestAsked)
		}
		reached := r.reached
		if isConnection(class(err)) {
			r.lost = true
		} else {
			reached = nil // the success of another informer does not end a refusal of this one
		}
		_ = r.backoff.wait(ctx, least, reached)
	}
}

// step gets the whole state, or watches from the version that the sink has.
func (r *reflector) step(ctx context.Context) error {
	if r.complete {
		return r.follow(ctx)
	}
	r.sink.restarted(relisted, r.why)
	if r.noBookmarks { // a bookmark would end the state of a watch list
		return r.list(ctx)
	}
	// The next step asks a server without watch lists for one again: the server may have
	// been upgraded meanwhile.
	if err := r.watchList(ctx); err == nil || !refusesWatchList(err) {
		return err
	}
	return r.list(ctx)
}

// refusesWatchList reports whether the server does not have watch lists at all. It answers
// with a status, or, if it does not know the parameter, with a watch that ends without the
// bookmark that completes the state. Any other failure leads to another watch list and not to
// a list, as in client-go: the list, or the watch after it, would fail in the same way.
func refusesWatchList(err error) bool {
	return errors.Is(err, errNoEnd) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err)
}
