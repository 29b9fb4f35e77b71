// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
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

// longestAsked is the longest wait that a server can ask for in an error event. In the header
// and body of an answer the client bounds it alike.
const longestAsked = time.Minute

// shortWatch is how long a watch must last to count as one if it brings nothing.
// Source: k8s.io/client-go/tools/cache, handleAnyWatch.
const shortWatch = time.Second

// sink takes what a reflector reads. It is called by one goroutine.
type sink interface {
	// begin says that a whole state is about to come: add and omit until whole or
	// abandon. restored is set where the server may have been set back to an older
	// state, after which one version may have been given to two states of an object.
	begin(restored bool)
	add(f *frame) error
	omit(f *frame)
	whole(version object.Version)
	abandon()

	// put and remove may be told of a change again.
	put(f *frame, version object.Version) error
	remove(f *frame, version object.Version) error
	// advance says that all changes up to a version have been told of.
	advance(version object.Version)
	// trouble is told of every failure, and of nil when things are well again.
	trouble(err error)
	// restarted is told why a whole state is read anew, or a watch begun again.
	restarted(what restart, why error)
}

// restart is what a reflector begins anew.
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

	// lost says that the server was not reached, or that a connection broke, and that
	// nothing has proven since that it is there again.
	lost bool
	// reached is closed when another informer has proven that the server is there since
	// the last try began, or since its watch broke.
	reached <-chan struct{}

	version  object.Version // of the newest change that the sink has been told of
	resume   object.Version // up to which it has been told of every change
	complete bool           // the sink has been given a whole state
	forgot   bool           // the server does not know version any more
	pageSize int64          // of lists at no version; 0: all in one
	expired  time.Time      // when a watch did last
	failures failures       // of watches, at one place
	why      error          // of the last try's failure; nil: a watch's time was up
	backoff  backoff
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
			continue // r.why is what led to it
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
			reached = nil // what another's success says of the server says nothing of a refusal
		}
		_ = r.backoff.wait(ctx, least, reached)
	}
}

// step does one thing: gets the whole state, or watches from where it stands.
func (r *reflector) step(ctx context.Context) error {
	if r.complete {
		return r.follow(ctx)
	}
	r.sink.restarted(relisted, r.why)
	// A server that has no watch list is asked for one again the next time: it may
	// have been replaced by one that has.
	if err := r.watchList(ctx); err == nil || !refusesWatchList(err) {
		return err
	}
	return r.list(ctx)
}

// refusesWatchList reports whether a server answered that it does not do watch
// lists, rather than that it cannot at the moment: by a status, or, where it does not
// know the parameter that asks for one, by a watch that ends without having said that
// the state is whole. What else goes wrong is tried again and not listed, as client-go
// does: it would befall the list too, or the watch that must come after it.
func refusesWatchList(err error) bool {
	return errors.Is(err, errNoEnd) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err)
}

// list gets the whole state by a list.
//
// The first list asks for the newest state there is (no version), not for any
// state (version 0) as client-go does. A server may be behind what this very
// process wrote before it was restarted, and a controller that acts on such a
// state makes things twice. The server answers from its watch cache all the same
// (consistent reads from cache, Kubernetes 1.31 and later). A later list must not
// be older than what is known.
//
// Pages are asked for only with a page size of the informer's own: client-go's habit of
// paging on once a server has paged an answer at version 0 has nothing to act upon.
func (r *reflector) list(ctx context.Context) error {
	options := client.ListOptions{PageSize: r.pageSize}
	if !r.forgot && !r.version.IsZero() {
		// With a page size a server reads from etcd what it has in memory.
		options = client.ListOptions{ResourceVersion: string(r.version)}
	}
	r.sink.begin(r.forgot)
	text, err := r.pages(ctx, options)
	var version object.Version
	if err == nil {
		version, err = object.ParseVersion(text)
	}
	if err != nil {
		r.sink.abandon()
	}
	if (isExpired(err) || isTooLargeVersion(err)) && !r.forgot {
		// The server lost its past, or was set back to it. Ask for what there
		// is, at once.
		r.forgot, r.why = true, err
		return errRelist
	}
	if err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	r.whole(version)
	return nil
}

// pages reads a list to its end, in as many pages as the server makes of it. Where a page
// has expired, the state is read anew and whole: pages may expire each time, of a large kind
// or of a server that compacts often.
// Source: k8s.io/client-go/tools/pager, ListPager.FullListIfExpired.
func (r *reflector) pages(ctx context.Context, o client.ListOptions) (version string, err error) {
	for {
		version, next, err := r.source.list(ctx, o, r.add)
		if o.Continue != "" && isExpired(err) {
			r.sink.abandon()
			r.sink.begin(r.forgot)
			o = client.ListOptions{}
			continue
		}
		if err != nil || next == "" {
			return version, err
		}
		// The place to go on names the version; to name one too is refused.
		o = client.ListOptions{PageSize: o.PageSize, Continue: next}
	}
}

// add gives the sink an object of a whole state.
func (r *reflector) add(f *frame) error {
	if err := r.sink.add(f); err != nil {
		return &undecodable{err}
	}
	return nil
}

// whole says that the sink has been given a whole state.
func (r *reflector) whole(version object.Version) {
	r.sink.whole(version)
	r.version, r.resume, r.complete, r.forgot = version, version, true, false
	r.well()
}

// well notes that the server has proven to answer as it should: with a whole state, or
// with a watch that works.
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
	w, err := r.source.watch(ctx, options)
	if err != nil {
		return r.mayForget(fmt.Errorf("listing by watch: %w", err))
	}
	defer func() { _ = w.close() }()
	r.sink.begin(r.forgot)
	version, err := r.initial(w)
	if err != nil {
		r.sink.abandon()
		return r.mayForget(fmt.Errorf("listing by watch: %w", err))
	}
	r.whole(version)
	return r.consume(ctx, w)
}

// initial reads a watch list up to the bookmark that ends the state.
func (r *reflector) initial(w stream) (object.Version, error) {
	for {
		kind, f, err := w.next()
		if errors.Is(err, io.EOF) {
			return "", errNoEnd
		}
		if err != nil {
			return "", err
		}
		switch kind {
		case wire.Added, wire.Modified:
			if err := r.add(f); err != nil {
				return "", err
			}
		case wire.Deleted:
			r.sink.omit(f)
		case wire.Bookmark:
			notes, err := f.head.Annotations()
			if err != nil {
				return "", err
			}
			if notes[metav1.InitialEventsAnnotationKey] == "true" {
				return object.ParseVersion(string(f.head.ResourceVersion))
			}
		}
	}
}

// mayForget notes where the server does not know the version asked for.
func (r *reflector) mayForget(err error) error {
	if (isExpired(err) || isTooLargeVersion(err)) && !r.forgot {
		r.forgot, r.why = true, err
		return errRelist
	}
	return err
}

// follow watches from where the sink stands: from before the last version of which more
// changes may come. Those that were told of come again then, and change nothing.
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
	return client.WatchOptions{Timeout: minWatchTimeout + rand.N(minWatchTimeout)}
}

// consume passes on the events of a watch until it ends.
func (r *reflector) consume(ctx context.Context, w stream) error {
	works := newProof(r.well)
	began, news := time.Now(), false
	defer func() {
		works.end()
		// What others proved while the watch lived, or this one by itself, says nothing
		// of the time after it.
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
				return nil // its time was up; go on where it ended
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			var status apierrors.APIStatus
			return r.afterWatch(err, errors.As(err, &status)) // an error event of any sort
		}
		version, err := object.ParseVersion(string(f.head.ResourceVersion))
		// A watch tells in order. What is before the place that was reached has been
		// told before, and may have been undone since. What is at that place may be
		// another change at the same version.
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
		r.told(kind, version)
		if isNews && !news {
			news = true
			works.given()
		}
	}
}

// told notes how far the sink has been told. A version is complete when a later one has
// come, or a bookmark: a server may make several changes at one. etcd deletes all keys of a
// lease in one revision.
func (r *reflector) told(kind string, version object.Version) {
	switch {
	case kind == wire.Bookmark:
		r.resume = version
	case version != r.version:
		r.resume = r.version
	}
	r.version = version
}

// afterWatch decides how to go on after a watch that failed. Where the place in
// the history is still good, the next watch resumes there: nothing is lost, and
// nothing needs to be listed. ofPlace says that the failure may be one of that place: the
// server answered, and neither its load nor the connection explains the answer.
func (r *reflector) afterWatch(err error, ofPlace bool) error {
	switch {
	case isExpired(err):
		// List at the last version first: another server, or this one's cache,
		// may well have a state that is newer. At once, but not again and again: where
		// every state expires as soon as it is read, reading states would be all that
		// client and server do.
		r.complete, r.why = false, err
		before := r.expired
		if r.expired = time.Now(); r.expired.Sub(before) > backoffReset {
			return errRelist
		}
	case isTooLargeVersion(err):
		r.complete = false
	case isUndecodable(err):
		// What the event was is lost. The version has not moved past it, but a
		// watch from here would bring the same bytes again.
		r.complete = false
	case ofPlace && r.failures.recur(r.version):
		// A server may have an object in its history that it cannot send, and it breaks
		// each watch that comes there.
		r.complete = false
	}
	return fmt.Errorf("watching: %w", err)
}

// failures counts watches that failed at one place of the history.
type failures struct {
	at    object.Version
	times int
}

// recurring is how many watches may fail at one place before the state is listed again.
const recurring = 3

// recur counts a failure at a place, and reports whether it is one too many.
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

// isTooLargeVersion reports whether the server says that the version asked for is
// in its future. Source of the cause and of the two older forms:
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
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Message == tooLargeVersion { // servers of 1.17.0 to 1.18.5
				return true
			}
		}
	}
	return strings.Contains(status.Status().Message, tooLargeVersion) // and before
}

const tooLargeVersion = "Too large resource version"
