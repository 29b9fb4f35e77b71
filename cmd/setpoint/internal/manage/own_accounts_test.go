// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// tokenServer makes accounts and tokens, and accepts the newest one. fakeapi has neither
// tokens nor authentication.
type tokenServer struct {
	mu       sync.Mutex
	account  bool
	tokens   int
	rejected bool   // no token is accepted
	denied   bool   // nobody may make one
	garbled  string // the answer to a request for one, if any
}

func (s *tokenServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const accounts = "/api/v1/namespaces/kube-system/serviceaccounts"
	switch {
	case r.URL.Path == accounts+"/some-controller/token" && s.denied:
		return answer(r, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","reason":"Forbidden","code":403,"message":"no right to make tokens"}`), nil
	case r.URL.Path == accounts+"/some-controller/token" && !s.account:
		return answer(r, http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","reason":"NotFound","code":404}`), nil
	case r.URL.Path == accounts+"/some-controller/token":
		s.tokens++
		if s.garbled != "" {
			return answer(r, http.StatusCreated, s.garbled), nil
		}
		return answer(r, http.StatusCreated, fmt.Sprintf(`{"spec":{"expirationSeconds":1000},"status":{"token":"sesame-%d"}}`, s.tokens)), nil
	case r.URL.Path == accounts:
		s.account = true
		return answer(r, http.StatusCreated, `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"some-controller","namespace":"kube-system"}}`), nil
	case s.rejected || r.Header.Get("Authorization") != fmt.Sprintf("Bearer sesame-%d", s.tokens):
		return answer(r, http.StatusUnauthorized, `{"kind":"Status","apiVersion":"v1","reason":"Unauthorized","code":401}`), nil
	}
	return answer(r, http.StatusOK, "{}"), nil
}

// asAccount is a client that works as an account of a server.
func asAccount(t *testing.T, s *tokenServer) *client.Client {
	t.Helper()
	process := &rest.Config{Host: "http://in-memory", Transport: s}
	tokens := &accountTokens{
		account: object.Key{Namespace: "kube-system", Name: "some-controller"}, process: newClient(t, process), turn: make(chan struct{}, 1),
	}
	own := rest.CopyConfig(process)
	own.Wrap(tokens.wrap)
	return newClient(t, own)
}

func TestAnAccountIsMadeAndItsTokenSharedAndRenewedBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tokenServer{}
		c := asAccount(t, s)
		ask := func() error { _, err := c.Request(http.MethodGet).Path("/version").Do(t.Context()); return err }
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if err := ask(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if s.tokens != 1 {
			t.Errorf("20 requests at once took %d tokens, want 1", s.tokens)
		}
		for _, at := range []struct {
			after  time.Duration
			tokens int
		}{{799 * time.Second, 1}, {time.Second, 2}} { // four fifths of what the server gave
			time.Sleep(at.after)
			if err := ask(); err != nil || s.tokens != at.tokens {
				t.Errorf("%d tokens, want %d: %v", s.tokens, at.tokens, err)
			}
		}
	})
}

func TestATokenThatIsNotAcceptedIsReplaced(t *testing.T) {
	s := &tokenServer{account: true, rejected: true}
	c := asAccount(t, s)
	for range 2 {
		if _, err := c.Request(http.MethodGet).Path("/version").Do(t.Context()); err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%v, want a refusal without the token in it", err)
		}
	}
	if s.tokens != 2 {
		t.Errorf("%d tokens were asked for, want one for each attempt", s.tokens)
	}
}

func TestARightThatIsMissingToActAsAnAccountIsSaid(t *testing.T) {
	_, err := asAccount(t, &tokenServer{account: true, denied: true}).Request(http.MethodGet).Path("/version").Do(t.Context())
	if err == nil || !strings.Contains(err.Error(), "getting a token of the service account kube-system/some-controller: ") || !strings.Contains(err.Error(), "no right to make tokens") {
		t.Errorf("%v", err)
	}
}

func TestAnAnswerThatCannotBeReadAsATokenIsNotInTheError(t *testing.T) {
	for _, garbled := range []string{
		`{"status":{"token":"sesame-`, `{"status":"sesame"}`, `{"status":{"token":["sesame"]}}`, `{"spec":{"expirationSeconds":"sesame"}}`,
		`sesame`, `{"spec":{},"status":{}}`, `{"sesame":`, `{"kind":"sesame","apiVersion":"sesame","status":{"token":7}}`,
	} {
		_, err := asAccount(t, &tokenServer{account: true, garbled: garbled}).Request(http.MethodGet).Path("/version").Do(t.Context())
		if err == nil || strings.Contains(err.Error(), "sesame") || !strings.Contains(err.Error(), "getting a token of the service account") {
			t.Errorf("%s: %v", garbled, err)
		}
	}
}
