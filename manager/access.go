// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/sha256"
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
	// rememberMost bounds the answers that are remembered.
	rememberMost = 1000
	// askTime bounds a question to the API server.
	askTime = 10 * time.Second
)

// ServingRights returns what a manager must be allowed to do so that it can find out who
// may see its metrics.
func ServingRights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}
}

// access finds out who somebody is and what he may see. What it cannot tell itself it asks
// the API server.
type access struct {
	certificates certificates
	tokens       *client.Client // asks whose a token is
	rights       *client.Client // asks who may see what
	log          *slog.Logger

	mu      sync.Mutex
	answers map[question]answer
}

// question is who asks, by a digest, because tokens are not kept, and a path.
type question struct {
	who  [sha256.Size]byte
	path string
}

type answer struct {
	code int // of HTTP
	why  string
	at   time.Time
}

// guard lets through who may get the path.
func (a *access) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, doubt := a.certificates.identify(r)
		token := bearerToken(r)
		if who == nil && token == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, a.wanted(doubt), http.StatusUnauthorized)
			return
		}
		if answer := a.ask(r.Context(), who, token, r.URL.Path); answer.code != http.StatusOK {
			http.Error(w, answer.why, answer.code)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// wanted says to somebody unknown what makes him known. doubt is why his certificate does
// not, if he has shown one.
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

// ask tells whether somebody may see a path: who, or, if that is nil, whose the token is.
func (a *access) ask(ctx context.Context, who *user, token, path string) answer {
	q := question{sha256.Sum256([]byte("token " + token)), path}
	if who != nil {
		q.who = who.digest()
	}
	a.mu.Lock()
	known, ok := a.answers[q]
	a.mu.Unlock()
	if ok && time.Since(known.at) < remember {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	code, why, err := a.review(ctx, who, token, path)
	if err != nil {
		// Who asked needs not know our rights; who runs this does.
		a.log.Warn("cannot find out who may see this", "path", path, "error", err)
		return answer{code: http.StatusInternalServerError, why: "the API server did not say whether you may see this"}
	}
	now := answer{code: code, why: why, at: time.Now()}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.answers) >= rememberMost {
		clear(a.answers)
	}
	a.answers[q] = now
	return now
}

// review asks the API server. The error never has the token in it.
func (a *access) review(ctx context.Context, who *user, token, path string) (code int, why string, err error) {
	if who == nil {
		if who, err = a.byToken(ctx, token); err != nil {
			return 0, "", err
		}
		if who == nil {
			return http.StatusUnauthorized, "the API server does not know this token, or no longer", nil
		}
	}
	may, err := client.For[*authorizationv1.SubjectAccessReview](a.rights).Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: who.Name, UID: who.UID, Groups: who.Groups, Extra: who.Extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		},
	})
	if err != nil {
		return 0, "", err
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, fmt.Sprintf("User %q cannot get path %q; a ClusterRole with nonResourceURLs grants it", who.Name, path), nil
	}
	return http.StatusOK, "", nil
}

// byToken asks whose a token is: nil if it is nobody's.
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
