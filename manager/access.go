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

// access asks the API server who somebody is and what he may see.
type access struct {
	client *client.Client
	log    *slog.Logger

	mu      sync.Mutex
	answers map[question]answer
}

// question is a token, which is not kept, and a path.
type question struct {
	token [sha256.Size]byte
	path  string
}

type answer struct {
	code int // of HTTP
	why  string
	at   time.Time
}

func newAccess(c *client.Client, log *slog.Logger) *access {
	return &access{client: c, log: log, answers: map[question]answer{}}
}

// guard lets through who may get the path.
func (a *access) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		token = strings.TrimSpace(token)
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a bearer token of the cluster is needed, such as kubectl create token gives", http.StatusUnauthorized)
			return
		}
		if answer := a.ask(r.Context(), token, r.URL.Path); answer.code != http.StatusOK {
			http.Error(w, answer.why, answer.code)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (a *access) ask(ctx context.Context, token, path string) answer {
	q := question{sha256.Sum256([]byte(token)), path}
	a.mu.Lock()
	known, ok := a.answers[q]
	a.mu.Unlock()
	if ok && time.Since(known.at) < remember {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	code, why, err := a.review(ctx, token, path)
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
func (a *access) review(ctx context.Context, token, path string) (code int, why string, err error) {
	who, err := client.For[*authenticationv1.TokenReview](a.client).Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	})
	if err != nil {
		return 0, "", err
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, "the API server does not know this token, or no longer", nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := client.For[*authorizationv1.SubjectAccessReview](a.client).Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		},
	})
	if err != nil {
		return 0, "", err
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, fmt.Sprintf("User %q cannot get path %q; a ClusterRole with nonResourceURLs grants it", user.Username, path), nil
	}
	return http.StatusOK, "", nil
}
