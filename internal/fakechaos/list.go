// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/setpoint-io/setpoint/wire"
)

// keptPages is how many lists can be in the middle of their pages.
const keptPages = 8

// serveList answers a list: whole, or a page of it.
func (s *Server) serveList(w http.ResponseWriter, r *http.Request, e wire.Encoding) {
	s.mu.Lock()
	body, refusal := s.page(r, e)
	s.mu.Unlock()
	if refusal != nil {
		refusal(w)
		return
	}
	if s.dice.roll(TruncatedList, 8) {
		body = body[:s.dice.number(len(body))]
	}
	w.Header().Set("Content-Type", e.MediaType())
	_, _ = w.Write(body) //nolint:gosec // as a status
}

// page is called with mu held.
func (s *Server) page(r *http.Request, e wire.Encoding) ([]byte, func(http.ResponseWriter)) {
	q := r.URL.Query()
	version, items := s.model.version, []*stored(nil)
	if token := q.Get("continue"); token != "" {
		// A page is of the version that the first one was of.
		rest, known := s.pages[token]
		at, _, _ := strings.Cut(token, ".")
		if version = number(at); !known || version < s.model.compacted {
			return nil, func(w http.ResponseWriter) { writeStatus(w, e, expired()) }
		}
		items = rest
	} else {
		if asked := q.Get("resourceVersion"); asked != "" && number(asked) > version {
			return nil, func(w http.ResponseWriter) { writeStatus(w, e, tooLarge(false)) }
		}
		for _, o := range s.model.objects {
			items = append(items, o)
		}
	}
	s.asked.Lists++
	next := ""
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && limit < len(items) {
		if len(s.pages) == keptPages {
			clear(s.pages)
		}
		next = fmt.Sprintf("%d.%d", version, s.asked.Lists)
		s.pages[next] = items[limit:]
		items = items[:limit]
	}
	return s.list(e, version, next, items), nil
}
