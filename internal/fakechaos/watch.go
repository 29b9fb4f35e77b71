// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/internal/pause"
	"github.com/setpoint-io/setpoint/wire"
)

// watching is the answer to a watch, between fakeapi and the client. fakeapi writes each event
// by one Write, and watching adds the faults.
type watching struct {
	http.ResponseWriter
	server   *Server
	request  *http.Request
	encoding wire.Encoding
	failed   bool // the server refused the request

	state  bool    // it is sending the state
	owes   bool    // the client waits for the bookmark that ends the state
	silent bool    // that bookmark is not sent while the server rages
	endsIn int     // events of the state until the watch ends; below zero it does not
	stands int64   // the version up to which it has sent, once it has sent something
	sent   []frame // the last changes
}

// repeatable is how many changes a watch may repeat.
const repeatable = 300

// errEnded ends a watch: fakeapi returns, and the answer ends in order.
var errEnded = errors.New("the watch ends")

func newWatching(s *Server, w http.ResponseWriter, r *http.Request) *watching {
	q := r.URL.Query()
	n := &watching{ResponseWriter: w, server: s, request: r, endsIn: -1}
	if q.Get("sendInitialEvents") == "true" {
		n.state, n.owes = true, true
		if s.dice.once(EarlyEnd, 8) {
			n.endsIn = s.dice.number(s.model.names)
		}
		n.silent = s.dice.roll(NoLastWords, 15)
	}
	return n
}

func (n *watching) WriteHeader(code int) {
	n.failed = code != http.StatusOK
	if e, err := wire.EncodingOf(n.Header().Get("Content-Type")); err == nil {
		n.encoding = e
	}
	if !n.failed {
		n.server.count(func(a *Asked) {
			if n.state {
				a.WatchLists++
			} else {
				a.Watches++
			}
		})
	}
	n.ResponseWriter.WriteHeader(code)
}

// Flush implements http.Flusher.
func (n *watching) Flush() { _ = http.NewResponseController(n.ResponseWriter).Flush() }

// Write takes one event.
func (n *watching) Write(p []byte) (int, error) {
	if n.failed {
		return n.ResponseWriter.Write(p)
	}
	kind, version, err := read(n.encoding, p)
	if err == nil {
		err = n.pass(frame{kind, version, bytes.Clone(p)})
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// pass sends an event, or a fault in its place.
func (n *watching) pass(f frame) error {
	switch {
	case f.kind == wire.Error:
		return n.send(f)
	case f.kind == wire.Bookmark:
		return n.mark(f)
	case n.state:
		return n.begin(f)
	}
	return n.change(f)
}

// begin sends an event of the state, unless the watch ends in the middle of it.
func (n *watching) begin(f frame) error {
	if n.endsIn == 0 {
		n.server.dice.count(EarlyEnd)
		return errEnded
	}
	n.endsIn--
	return n.send(f)
}

// mark sends a bookmark, unless it is dropped.
func (n *watching) mark(f frame) error {
	n.stands = f.version
	if n.state {
		n.state = false
		if n.silent {
			return nil
		}
		n.owes = false
		return n.send(f)
	}
	if err := n.makeGood(); err != nil || n.server.dice.roll(NoBookmark, 3) {
		return err
	}
	return n.send(f)
}

// makeGood sends the bookmark that the client waits for, once the server is calm.
func (n *watching) makeGood() error {
	if !n.owes || !n.server.dice.calm() {
		return nil
	}
	n.owes = false
	return n.send(n.server.kind.endOfState(n.encoding, n.stands))
}

// change sends a change.
func (n *watching) change(f frame) error {
	if err := n.makeGood(); err != nil {
		return err
	}
	whole := f
	if n.server.dice.roll(Garbled, 1500) {
		f = n.server.kind.garbled(n.encoding, f.kind)
	}
	if mishap := n.mishap(); mishap != nil {
		if err := mishap(f); err != nil {
			return err
		}
	}
	n.stands = whole.version
	n.sent = append(n.sent[max(0, len(n.sent)-repeatable+1):], whole)
	return n.send(f)
}

// again returns some of the last changes, up to where the watch stands.
func (n *watching) again() []frame {
	if len(n.sent) == 0 {
		return nil
	}
	return n.sent[n.server.dice.number(len(n.sent)):]
}

// mishap returns a fault that precedes the next change, or nil for none. The error of the fault
// ends the watch.
func (n *watching) mishap() func(frame) error {
	d := n.server.dice
	last := func(f frame) error { return errors.Join(n.send(f), errEnded) }
	switch {
	case d.roll(Truncated, 900):
		return func(f frame) error {
			f.bytes = f.bytes[:1+d.number(len(f.bytes)-1)]
			return last(f)
		}
	case d.roll(Ended, 900):
		return func(frame) error { return errEnded }
	case d.roll(ErrorGone, 1200):
		return func(frame) error {
			return last(errorEvent(n.encoding, apierrors.NewResourceExpired("too old resource version")))
		}
	case d.roll(ErrorEvent, 1200):
		return func(frame) error { return last(errorEvent(n.encoding, apierrors.NewInternalError(errBroken))) }
	case d.roll(Pause, 200):
		return func(frame) error { n.wait(time.Duration(d.number(3000)) * time.Millisecond); return nil }
	case n.owes: // what comes again before the state is whole cannot be distinguished from it
	case d.roll(Replay, 150):
		return func(frame) error { return n.send(n.again()...) }
	case d.roll(Repeat, 150):
		return func(frame) error {
			old := n.again()
			return n.send(old[:min(1, len(old))]...)
		}
	case d.roll(Foreign, 1500):
		return func(frame) error { return n.send(foreign(n.encoding)) }
	}
	return nil
}

// wait returns early when the request ends.
func (n *watching) wait(d time.Duration) {
	pause.For(n.request.Context(), d)
}

func (n *watching) send(frames ...frame) error {
	for _, f := range frames {
		if _, err := n.ResponseWriter.Write(f.bytes); err != nil {
			return err
		}
	}
	return nil
}
