// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/wire"
)

const (
	// bookmarkEvery is how often a watch says how far it has come. Source:
	// k8s.io/apiserver/pkg/storage/cacher, defaultBookmarkFrequency.
	bookmarkEvery = time.Minute
	// watchTimeout is how long a watch lasts that names no timeout: a real server chooses
	// from half an hour to an hour. Source: --min-request-timeout of kube-apiserver.
	watchTimeout = 30 * time.Minute
)

// watching is an open watch.
type watching struct {
	*selection
	answer  *answer
	options *metav1.ListOptions

	stands uint64 // the version up to which it has sent; guarded by the server's mu
	ended  bool   // by the server; guarded by the server's mu
	gone   bool   // the client is
}

// watch answers a watch. An error is one before the watch began.
//
// Each event is one Write to the ResponseWriter.
func (r *Resource) watch(q *Request, a *answer) error {
	options, err := q.listOptions()
	if err != nil {
		return err
	}
	selected, err := r.newSelection(q, options)
	if err != nil {
		return err
	}
	from, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return newStatusError(http.StatusInternalServerError, "", err.Error()) // as upstream does
	}
	w := &watching{selection: selected, answer: a, options: options}
	first, refusal, err := w.begin(from)
	if err != nil {
		return err
	}
	defer w.end()
	a.w.Header().Set("Content-Type", a.form.encoding.MediaType()+streams(a.form.encoding))
	a.w.WriteHeader(http.StatusOK)
	if refusal != nil {
		// A real server answers with an event once the request is known to be good.
		s := refusal.Status()
		s.Kind, s.APIVersion = "Status", "v1"
		raw := a.form.statusBody(&s)
		if a.form.encoding == wire.Protobuf {
			raw = must(s.Marshal())
		}
		w.send(a.form.event(wire.Error, "v1", "Status", raw))
		return nil
	}
	w.send(first...)
	w.follow(q)
	return nil
}

// streams is what protobuf's media type says of a watch.
func streams(e wire.Encoding) string {
	if e == wire.Protobuf {
		return ";stream=watch"
	}
	return ""
}

// begin returns the first events of a watch, or the error to begin it with.
func (w *watching) begin(from uint64) (first [][]byte, refusal apierrors.APIStatus, err error) {
	r := w.resource
	r.mu.Lock()
	defer r.mu.Unlock()
	streamsState := w.options.SendInitialEvents != nil && *w.options.SendInitialEvents
	all := streamsState || from == 0 && w.options.SendInitialEvents == nil
	if from > r.version {
		if streamsState {
			return nil, nil, tooLarge(from, r.version)
		}
		if !r.restored {
			return nil, tooLarge(from, r.version).(apierrors.APIStatus), nil
		}
	}
	w.stands = from
	switch {
	case all:
		w.stands = r.version
		for _, one := range sorted(r.objects) {
			if w.takes(one.state) {
				first = append(first, w.frame(wire.Added, one.state))
			}
		}
		if streamsState && w.options.AllowWatchBookmarks {
			first = append(first, w.bookmark(true))
		}
	case from == 0:
		w.stands = r.version
	case from > r.version || !r.knows(from):
		return nil, apierrors.NewResourceExpired("too old resource version: " + strconv.FormatUint(from, 10) +
			" (" + strconv.FormatUint(r.compacted, 10) + ")"), nil
	}
	r.watches[w] = true
	return first, nil, nil
}

// end forgets a watch.
func (w *watching) end() {
	w.resource.mu.Lock()
	defer w.resource.mu.Unlock()
	delete(w.resource.watches, w)
}

// follow sends what happens until the watch ends.
func (w *watching) follow(q *Request) {
	timeout := watchTimeout
	if seconds := w.options.TimeoutSeconds; seconds != nil && *seconds > 0 {
		timeout = time.Duration(*seconds) * time.Second
	}
	end := time.NewTimer(timeout)
	defer end.Stop()
	tick := time.NewTicker(cmp.Or(w.resource.BookmarkEvery, bookmarkEvery))
	defer tick.Stop()
	for !w.gone {
		news, more, goes := w.news(false)
		w.send(news...)
		if !goes {
			return
		}
		select {
		case <-more:
		case <-tick.C:
			news, _, _ := w.news(true)
			w.send(news...)
		case <-end.C:
			return
		case <-q.HTTP.Context().Done():
			return
		}
	}
}

// news returns the events since the last call, and how to wait for others. goes is false
// once the server ends the watch.
func (w *watching) news(mark bool) (frames [][]byte, more <-chan struct{}, goes bool) {
	r := w.resource
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.ended || !slices.Contains(r.resources, r) {
		return nil, nil, false
	}
	if r.holds(r) {
		return nil, r.more, true
	}
	for _, c := range r.history.after(w.stands) {
		if c.resource == r {
			if time.Now().Before(c.shown) {
				return frames, r.more, true
			}
			frames = w.appendChange(frames, c)
		}
		w.stands = c.version
	}
	w.stands = r.version
	if mark && w.options.AllowWatchBookmarks {
		frames = append(frames, w.bookmark(false))
	}
	return frames, r.more, true
}

// appendChange adds the event of a change as it looks through the selectors.
func (w *watching) appendChange(frames [][]byte, c change) [][]byte {
	was, is := w.takes(c.before), w.takes(c.after)
	switch {
	case c.kind == wire.Deleted:
		if was {
			return append(frames, w.frame(wire.Deleted, c.after))
		}
	case was && is:
		return append(frames, w.frame(wire.Modified, c.after))
	case is:
		return append(frames, w.frame(wire.Added, c.after))
	case was: // the event has the last state that matched, at the version at which it no longer did
		last := c.before.object.DeepCopy()
		last.SetResourceVersion(c.after.object.GetResourceVersion())
		return append(frames, w.frame(wire.Deleted, &state{object: last, version: c.version}))
	}
	return frames
}

func (w *watching) frame(event string, o *state) []byte {
	f := w.answer.form
	apiVersion, kind := f.kind(w.resource)
	return f.event(event, apiVersion, kind, o.raw(w.resource, f))
}

// bookmark says how far the watch has come; complete, that its first events were the
// whole state.
func (w *watching) bookmark(complete bool) []byte {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(w.resource.GroupVersionKind())
	o.SetResourceVersion(strconv.FormatUint(w.stands, 10))
	if complete {
		o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return w.frame(wire.Bookmark, &state{object: o})
}

// send sends events.
func (w *watching) send(frames ...[]byte) {
	if w.gone {
		return
	}
	for _, frame := range frames {
		if _, err := w.answer.w.Write(frame); err != nil {
			w.gone = true
			return
		}
	}
	if err := http.NewResponseController(w.answer.w).Flush(); err != nil {
		w.gone = true
	}
}
