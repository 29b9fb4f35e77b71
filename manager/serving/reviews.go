// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"context"
	"crypto/sha256"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// How many questions are with the API server at a time, and how many about unknown tokens are
// sent in a second. Beyond these limits the answer is 429 at once: no question of a stranger
// waits. Questions about users who were known before have turns of their own, so that a flood of
// tokens does not keep a scraper out.
const (
	strangersAtOnce = 4
	strangersPace   = 10 // a second
	strangersBurst  = 20
	knownAtOnce     = 8
	// rememberMost bounds the answers that are remembered about known users, and those about
	// others. One takes some 200 bytes, whatever the question was.
	rememberMost = 500
)

// question is a digest of a user or a token, and of a path. So tokens are not kept, and a client
// does not choose its size.
type question [sha256.Size]byte

func questionOf(who *user, token, path string) question {
	of := sha256.Sum256([]byte("token " + token))
	if who != nil {
		of = who.digest()
	}
	return sha256.Sum256(append(of[:], path...))
}

// answer is an answer of the API server.
type answer struct {
	code int    // of HTTP
	user string // the name of the user, shortened; empty: unknown
	at   time.Time
}

// Remember is how long answers of the API server count: the user of a token, that a user may see
// a path, and that a user may not. 0 is 10 s each, and a negative time is not at all. For a token
// both answers are remembered as one, for the shorter time.
type Remember struct{ Tokens, Allowed, Denied time.Duration }

// fresh reports whether an answer is young enough. certain says that it is not about a token.
func (r Remember) fresh(a answer, certain bool) bool {
	lasts := cmp.Or(r.Tokens, remember)
	if certain {
		lasts = math.MaxInt64
	}
	switch a.code {
	case http.StatusOK:
		lasts = min(lasts, cmp.Or(r.Allowed, remember))
	case http.StatusForbidden:
		lasts = min(lasts, cmp.Or(r.Denied, remember))
	}
	return time.Since(a.at) < lasts
}

// inquiry is a question that is with the API server.
type inquiry struct {
	answered chan struct{}
	answer   answer // once answered is closed
}

// reviews remembers answers and bounds the questions. It is safe for concurrent use.
type reviews struct {
	pace             flowcontrol.RateLimiter // of questions about strangers
	strangers, known chan struct{}           // turns

	lasts Remember // how long answers count

	mu        sync.Mutex
	unknown   answers // about unknown users
	people    answers // about users that were known at some time
	inquiries map[question]*inquiry
}

func newReviews() *reviews {
	return &reviews{
		pace:      flowcontrol.NewTokenBucketRateLimiter(strangersPace, strangersBurst),
		strangers: make(chan struct{}, strangersAtOnce), known: make(chan struct{}, knownAtOnce),
		inquiries: map[question]*inquiry{},
	}
}

// answer returns what is remembered, or asks. certain says that it is known already who
// asks. Of several who ask the same at a time one asks the API server.
func (r *reviews) answer(ctx context.Context, q question, certain bool, ask func() answer) answer {
	r.mu.Lock()
	person, known := r.people.all[q]
	for _, a := range []answer{person, r.unknown.all[q]} {
		if a.code != 0 && r.lasts.fresh(a, certain) {
			r.mu.Unlock()
			return a
		}
	}
	i := r.inquiries[q]
	if i == nil {
		i = &inquiry{answered: make(chan struct{}), answer: answer{code: http.StatusInternalServerError}}
		r.inquiries[q] = i
		r.mu.Unlock()
		defer r.end(q, i)
		i.answer = r.ask(certain || known, ask)
		return i.answer
	}
	r.mu.Unlock()
	select {
	case <-i.answered:
		return i.answer
	case <-ctx.Done():
		return answer{code: http.StatusInternalServerError}
	}
}

// ask asks if there is a turn for it.
func (r *reviews) ask(known bool, ask func() answer) answer {
	turns := r.strangers
	if known {
		turns = r.known
	}
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	default:
		return answer{code: http.StatusTooManyRequests}
	}
	if !known && !r.pace.TryAccept() {
		return answer{code: http.StatusTooManyRequests}
	}
	a := ask()
	a.at = time.Now()
	return a
}

// end remembers the answer, if it is one of the API server's.
func (r *reviews) end(q question, i *inquiry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inquiries, q)
	close(i.answered)
	switch i.answer.code {
	case http.StatusOK, http.StatusForbidden:
		r.unknown.drop(q)
		r.people.put(q, i.answer)
	case http.StatusUnauthorized:
		r.people.drop(q)
		r.unknown.put(q, i.answer)
	}
}

// answers are the newest ones, rememberMost of them at most.
type answers struct {
	all   map[question]answer
	order []question // the oldest first
}

func (s *answers) put(q question, a answer) {
	if s.all == nil {
		s.all = map[question]answer{}
	}
	s.drop(q)
	if len(s.order) == rememberMost {
		s.drop(s.order[0])
	}
	s.all[q] = a
	s.order = append(s.order, q)
}

func (s *answers) drop(q question) {
	if _, ok := s.all[q]; !ok {
		return
	}
	delete(s.all, q)
	at := slices.Index(s.order, q)
	s.order = slices.Delete(s.order, at, at+1)
}
