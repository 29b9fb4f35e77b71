// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/client"
)

const (
	// remember is how long an answer of the API server counts.
	// Source: k8s.io/apiserver/pkg/server/options, the cache of delegated authentication.
	remember = 10 * time.Second
	// askTime bounds a question to the API server.
	askTime = 10 * time.Second
	// longestName is how much of a name a refusal repeats, in bytes.
	longestName = 256
	// sayAgain is how often a failure of reviews is logged at most.
	sayAgain = time.Minute
)

// Rights returns the rights that a process needs so that the API server tells it who may see its
// pages.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}
}

// access authenticates and authorizes users. What it cannot decide itself the API server decides;
// its clients have no other use.
type access struct {
	certificates certificates
	tokens       *client.Client // for TokenReviews
	rights       *client.Client // for SubjectAccessReviews
	reviews      *reviews
	objects      *reviews // those about rights on objects: they must not replace answers about pages
	log          *slog.Logger

	mu   sync.Mutex
	said time.Time // when a failure of reviews was logged last
}

// need is which path a user must have the right to get.
type need struct {
	path string // empty: that of the request
	part string // a second path of which the right is enough; empty: none
}

// guard serves a page to users who have a right that it needs. It stands before handlers of few paths, or of paths that
// need the right to one, so that strangers do not choose the questions to the API server and the answers that are kept.
func (a *access) guard(next http.Handler, of need) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, part := cmp.Or(of.path, r.URL.Path), of.part
		who, doubt := a.certificates.identify(r)
		token := bearerToken(r)
		if who == nil && token == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, Printable(a.wanted(doubt)), http.StatusUnauthorized)
			return
		}
		answer := a.ask(r.Context(), who, token, path)
		if answer.code == http.StatusForbidden && part != "" {
			answer = a.ask(r.Context(), who, token, part)
		}
		if answer.code == http.StatusOK {
			next.ServeHTTP(w, withViewer(r, &Viewer{access: a, who: who, token: token}))
			return
		}
		refuse(w, path, part, answer)
	})
}

// refuse answers a request of a user who may see nothing of a page.
func refuse(w http.ResponseWriter, path, part string, answer answer) {
	switch answer.code {
	case http.StatusUnauthorized:
		http.Error(w, "the API server does not know this token, or no longer", answer.code)
	case http.StatusForbidden:
		also := ""
		if part != "" {
			also = fmt.Sprintf(" and cannot get path %q", part)
		}
		http.Error(w, fmt.Sprintf("User %q cannot get path %q%s; a ClusterRole with nonResourceURLs grants it", answer.user, path, also), answer.code)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the API server is being asked about others who ask here; try again later", answer.code)
	default:
		http.Error(w, "the API server did not say whether you may see this", http.StatusInternalServerError)
	}
}

func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// wanted tells an unknown user which credentials are needed. doubt is why the certificate is not
// accepted, if the client has shown one.
func (a *access) wanted(doubt error) string {
	const advice = "a bearer token of the cluster is needed, such as kubectl create token gives"
	switch {
	case !a.certificates.any():
		return advice
	case doubt != nil:
		return fmt.Sprintf("the client certificate is not accepted: %s; one of the cluster is needed, or a bearer token", doubt)
	}
	return advice + ", or a client certificate of the cluster"
}

// ask returns whether a user may see a path. A nil user is the one whose token it is.
func (a *access) ask(ctx context.Context, who *user, token, path string) answer {
	q := questionOf(who, token, path)
	return a.reviews.answer(ctx, q, who != nil, func() answer {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime) // others may wait for the answer
		defer cancel()
		now, err := a.review(ctx, who, token, path)
		if err != nil {
			a.say(path, err)
			return answer{code: http.StatusInternalServerError}
		}
		return now
	})
}

// say logs that reviews fail: the operator of this process must know it, a client need not. A
// client must not be able to fill the log.
func (a *access) say(path string, err error) {
	a.mu.Lock()
	again := !a.said.IsZero() && time.Since(a.said) < sayAgain
	if !again {
		a.said = time.Now()
	}
	a.mu.Unlock()
	if !again {
		a.log.Warn("cannot find out who may see this", "path", path, "error", err, "saidAgainAfter", sayAgain)
	}
}

// review sends the reviews to the API server. The error never contains the token.
func (a *access) review(ctx context.Context, who *user, token, path string) (answer, error) {
	if who == nil {
		var err error
		if who, err = a.byToken(ctx, token); err != nil {
			return answer{}, err
		}
		if who == nil {
			return answer{code: http.StatusUnauthorized}, nil
		}
	}
	return a.reviewRight(ctx, who, authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	})
}

// reviewRight asks the API server whether a user has the right of a review.
func (a *access) reviewRight(ctx context.Context, who *user, of authorizationv1.SubjectAccessReviewSpec) (answer, error) {
	of.User, of.UID, of.Groups, of.Extra = who.Name, who.UID, who.Groups, who.Extra
	may, err := client.For[*authorizationv1.SubjectAccessReview](a.rights).Create(ctx, &authorizationv1.SubjectAccessReview{Spec: of})
	if err != nil {
		return answer{}, err
	}
	now := answer{code: http.StatusForbidden, user: strings.ToValidUTF8(who.Name[:min(len(who.Name), longestName)], "")}
	if may.Status.Allowed {
		now.code = http.StatusOK
	}
	return now, nil
}

// byToken returns the user of a token, nil if it has none.
func (a *access) byToken(ctx context.Context, token string) (*user, error) {
	review, err := client.For[*authenticationv1.TokenReview](a.tokens).Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	})
	if err != nil || !review.Status.Authenticated {
		return nil, err
	}
	known := review.Status.User
	who := &user{Name: known.Username, UID: known.UID, Groups: known.Groups, Extra: map[string]authorizationv1.ExtraValue{}}
	for key, values := range known.Extra {
		who.Extra[key] = authorizationv1.ExtraValue(values)
	}
	return who, nil
}
