// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/setpoint-io/setpoint/object"
)

// Viewer is the user of a request for a page. A page that is about objects asks it which of them to show. Its methods
// are safe for concurrent use.
type Viewer struct {
	all    bool    // of a server without TLS, and of an open path
	access *access // nil: of a request that no Server has let pass

	token string

	mu  sync.Mutex
	who *user // nil: the one of the token, which is not known yet
}

type viewerKey struct{}

// ViewerOf returns the user of a request, in a handler of [Server.Page] or [Server.PageInParts]. In any other handler it
// returns a user without rights.
func ViewerOf(r *http.Request) *Viewer {
	if v, ok := r.Context().Value(viewerKey{}).(*Viewer); ok {
		return v
	}
	return &Viewer{}
}

func withViewer(r *http.Request, v *Viewer) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), viewerKey{}, v))
}

// toAll serves a page to every client, with all that is in it.
func toAll(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, withViewer(r, &Viewer{all: true}))
	})
}

// ErrNoAnswer is the error of a right that is not known: the API server did not answer, or too many requests are under
// way. A page must not show what needs the right, and may say that it does not know.
var ErrNoAnswer = errors.New("the API server did not say who may see this")

// MayGetPath reports whether the user may get a path, such as "/debug/runs". The path must be one of few: answers are
// remembered for as long as those about pages, and share their room. The error is [ErrNoAnswer].
func (v *Viewer) MayGetPath(ctx context.Context, path string) (bool, error) {
	if v.all || v.access == nil {
		return v.all, nil
	}
	return allowed(v.access.ask(ctx, v.user(), v.token, path))
}

// MayGet reports whether the user may get an object. With a key without a name, it reports whether the user may get all
// objects of a kind in the namespace, or in all namespaces if there is none. The API server decides by its rules for
// the verb get. Answers are remembered as those about pages are. The error is [ErrNoAnswer].
func (v *Viewer) MayGet(ctx context.Context, r object.Resource, key object.Key) (bool, error) {
	if v.all || v.access == nil {
		return v.all, nil
	}
	who, err := v.identity(ctx)
	if err != nil {
		return false, err
	}
	return allowed(v.access.askAbout(ctx, who, r, key))
}

func allowed(a answer) (bool, error) {
	switch a.code {
	case http.StatusOK:
		return true, nil
	case http.StatusForbidden, http.StatusUnauthorized:
		return false, nil
	}
	return false, ErrNoAnswer
}

func (v *Viewer) user() *user {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.who
}

// identity returns the user, whom the API server names if there is a token: once, for all objects of a page.
func (v *Viewer) identity(ctx context.Context) (*user, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.who != nil {
		return v.who, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	who, err := v.access.byToken(ctx, v.token)
	switch {
	case err != nil:
		v.access.say("the user of a token", err)
		return nil, ErrNoAnswer
	case who == nil: // revoked since the page was begun
		return nil, ErrNoAnswer
	}
	v.who = who
	return who, nil
}

// askAbout returns whether a user may get an object.
func (a *access) askAbout(ctx context.Context, who *user, r object.Resource, key object.Key) answer {
	// A path begins with a slash, so no question about a path is the same.
	about := fmt.Sprintf("get %q %q %q %q", r.Group, r.Plural, key.Namespace, key.Name)
	return a.objects.answer(ctx, questionOf(who, "", about), true, func() answer {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime) // others may wait for the answer
		defer cancel()
		now, err := a.reviewRight(ctx, who, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "get", Group: r.Group, Version: r.Version, Resource: r.Plural, Namespace: key.Namespace, Name: key.Name,
		}})
		if err != nil {
			a.say(r.String(), err)
			return answer{code: http.StatusInternalServerError}
		}
		return now
	})
}
