// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/wire"
)

// watching is one watch.
type watching struct {
	server *Server
	e      wire.Encoding
	w      http.ResponseWriter
	r      *http.Request

	number int64 // of the history that it follows
	stands int64 // the version up to which it has sent
	owes   bool  // the bookmark that ends the state
	failed bool  // the client is gone, or was given up
}

// serveWatch answers a watch.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, e wire.Encoding) {
	q := r.URL.Query()
	n := &watching{server: s, e: e, w: w, r: r}
	asWatchList := q.Get("sendInitialEvents") == "true"
	from := q.Get("resourceVersion")

	s.mu.Lock()
	n.number = s.model.now
	n.stands = s.model.version
	var state [][]byte
	var refusal *metav1.Status
	inStream := false
	switch {
	case asWatchList && q.Get("resourceVersionMatch") != string(metav1.ResourceVersionMatchNotOlderThan):
		refusal = newStatus(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents needs resourceVersionMatch")
	case asWatchList && s.noWatchList:
		s.dice.count(NoWatchList)
		refusal = newStatus(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden for watch")
	case (asWatchList || !s.model.knows(number(from))) && number(from) > s.model.version:
		refusal = tooLarge(false)
	case asWatchList || from == "" || from == "0":
		for _, o := range s.model.objects {
			state = append(state, s.frame(e, wire.Added, o))
		}
		n.owes = asWatchList
	case !s.model.knows(number(from)) || number(from) < s.model.compacted:
		refusal, inStream = expired(), s.dice.number(2) == 0 // servers do both
	default:
		n.stands = number(from)
	}
	if refusal == nil {
		if asWatchList {
			s.asked.WatchLists++
		} else {
			s.asked.Watches++
		}
	}
	s.mu.Unlock()

	if refusal != nil && !inStream {
		writeStatus(w, e, refusal)
		return
	}
	w.Header().Set("Content-Type", e.MediaType()+";stream=watch")
	w.WriteHeader(http.StatusOK)
	if refusal != nil {
		n.send(errorEvent(e, refusal))
		return
	}
	timeout := time.Hour
	if seconds, err := strconv.Atoi(q.Get("timeoutSeconds")); err == nil {
		timeout = time.Duration(seconds) * time.Second
	}
	n.follow(state, timeout)
}

// follow sends the state, and then changes until the watch ends.
func (n *watching) follow(state [][]byte, timeout time.Duration) {
	s := n.server
	if len(state) > 0 && n.owes && s.dice.roll(EarlyEnd, 8) {
		n.send(state[:s.dice.number(len(state))]...)
		return
	}
	n.send(state...)
	if n.owes && !s.dice.roll(NoLastWords, 15) {
		n.end()
	}
	end := time.NewTimer(timeout)
	defer end.Stop()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for !n.failed {
		s.mu.Lock()
		more := s.more
		s.mu.Unlock()
		n.changes()
		if n.owes && s.dice.calm() {
			n.end()
		}
		select {
		case <-more:
		case <-tick.C:
			n.mark()
		case <-end.C:
			return
		case <-n.r.Context().Done():
			return
		}
	}
}

// end sends the bookmark that says that the state is whole.
func (n *watching) end() {
	n.owes = false
	n.send(n.server.bookmark(n.e, n.stands, true))
}

// mark sends a bookmark.
func (n *watching) mark() {
	if !n.server.dice.roll(NoBookmark, 3) {
		n.send(n.server.bookmark(n.e, n.stands, false))
	}
}

// changes sends what happened since, one by one where something may go wrong.
func (n *watching) changes() {
	s := n.server
	s.mu.Lock()
	if s.model.now != n.number || n.stands < s.model.settled {
		// Another history has begun, or a client was too slow.
		s.mu.Unlock()
		n.failed = true
		return
	}
	news := s.model.past[n.number].after(n.stands)
	frames := make([][]byte, len(news))
	for i, c := range news {
		frames[i] = s.frame(n.e, c.kind, c.object)
	}
	s.mu.Unlock()
	var ready [][]byte
	for i, c := range news {
		if s.dice.roll(Garbled, 1500) {
			frames[i] = s.garbled(n.e, c.kind)
		}
		if mishap := n.mishap(); mishap != nil {
			n.send(ready...)
			ready = nil
			mishap(frames[i])
			if n.failed {
				return
			}
		}
		ready = append(ready, frames[i])
		n.stands = c.version
	}
	n.send(ready...)
}

// mishap returns what goes wrong before a change is sent, if anything.
func (n *watching) mishap() func(frame []byte) {
	d := n.server.dice
	fail := func(frame []byte) { n.send(frame); n.failed = true }
	switch {
	case d.roll(Truncated, 900):
		return func(frame []byte) { fail(frame[:1+d.number(len(frame)-1)]) }
	case d.roll(Ended, 900):
		return func([]byte) { n.failed = true }
	case d.roll(ErrorGone, 1200):
		return func([]byte) { fail(errorEvent(n.e, expired())) }
	case d.roll(ErrorEvent, 1200):
		return func([]byte) {
			fail(errorEvent(n.e, newStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the watch broke")))
		}
	case d.roll(Pause, 200):
		return func([]byte) { wait(n.r, time.Duration(d.number(3000))*time.Millisecond) }
	case n.owes: // what comes again before the state is whole cannot be told from it
	case d.roll(Replay, 150):
		return func([]byte) { n.again(-1) }
	case d.roll(Repeat, 150):
		return func([]byte) { n.again(1) }
	case d.roll(Foreign, 1500):
		return func([]byte) { n.send(foreign(n.e)) }
	}
	return nil
}

// again sends some of the last changes once more: all up to where the watch
// stands, or only some.
func (n *watching) again(count int) {
	s := n.server
	s.mu.Lock()
	var frames [][]byte
	if h := s.model.past[n.number]; h != nil {
		old := h.log[:len(h.log)-len(h.after(n.stands))]
		if len(old) > 0 {
			old = old[max(0, len(old)-1-s.dice.number(300)):]
		}
		if count > 0 && len(old) > count {
			old = old[:count]
		}
		for _, c := range old {
			frames = append(frames, s.frame(n.e, c.kind, c.object))
		}
	}
	s.mu.Unlock()
	n.send(frames...)
}

// send sends frames at once.
func (n *watching) send(frames ...[]byte) {
	if n.failed {
		return
	}
	for _, frame := range frames {
		if _, err := n.w.Write(frame); err != nil {
			n.failed = true
			return
		}
	}
	if err := http.NewResponseController(n.w).Flush(); err != nil {
		n.failed = true
	}
}
