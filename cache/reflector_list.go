// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// list gets the whole state by a list.
//
// The first list asks for the newest state (no version). client-go's first list accepts any
// state (version 0). Such a state may be older than what this process wrote before it was
// restarted, and a controller that acts on it creates objects a second time. The server
// still answers from its watch cache (consistent reads from cache, Kubernetes 1.31 and
// later). A later list must not be older than the version that the sink has.
//
// A list has pages only if the informer has a page size. client-go also pages after a server
// has paged an answer at version 0; no list here is at version 0.
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
		// The server has compacted its history, or was restored to an older state. The
		// next list asks for the newest state, at once.
		r.forgot, r.why = true, err
		return errRelist
	}
	if err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	r.whole(version)
	return nil
}

// pages reads a list to its end, in as many pages as the server makes of it. When a page has
// expired, pages reads the state again in one answer: with a large kind, or a server that
// compacts often, pages may expire each time.
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
		// The continue token has the version; a server refuses a request with both.
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

// whole completes the state of the sink.
func (r *reflector) whole(version object.Version) {
	r.sink.whole(version)
	r.version, r.resume, r.complete, r.forgot = version, version, true, false
	r.well()
}

// well is called when the server has answered with a whole state, or with a watch that
// works.
func (r *reflector) well() {
	r.sink.trouble(nil)
	if r.lost {
		r.lost = false
		r.server.beat()
	}
}

// watchList gets the whole state as the first events of a watch, and continues with that
// watch. The server sends a state that is no older than the request, one object at a time,
// and then a bookmark that completes it.
//
// A server of 1.37 compresses such a watch. That is worthwhile for the state. After it, each
// event is a gzip stream of its own (k8s.io/apiserver/pkg/endpoints/handlers,
// perFlushGzipWriter): in a profile of StatefulSets that were created, decompressing took 7 % of
// the CPU of a manager, and compressing takes more of the server's. So the watch ends then, and
// the next one, which is not compressed, continues at the version of the state.
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
	if w.compressed() {
		return nil // follow continues
	}
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

// mayForget returns errRelist if the server does not know the version of the request. The
// next list then asks for the newest state.
func (r *reflector) mayForget(err error) error {
	if (isExpired(err) || isTooLargeVersion(err)) && !r.forgot {
		r.forgot, r.why = true, err
		return errRelist
	}
	return err
}

// isTooLargeVersion reports whether the version of the request is newer than any that the
// server has. Source of the cause and of the two older forms:
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
