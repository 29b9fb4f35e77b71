// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
)

// tripper is a transport of one function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(r *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Request: r, Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/json"}},
	}
}

func TestALimitedClientSendsNoFasterThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := &rest.Config{Host: "http://in-memory", Transport: tripper(func(r *http.Request) (*http.Response, error) {
			return answer(r, http.StatusOK, "{}"), nil
		})}
		(&rateLimit{perSecond: 10, burst: 2}).limit(config)
		one, other := newClient(t, config), newClient(t, config)
		began := time.Now()
		for range 12 { // two at once, the others a tenth of a second apart
			if _, err := one.Request(http.MethodGet).Path("/version").Do(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began).Round(10 * time.Millisecond); took != time.Second {
			t.Errorf("12 requests took %s, want 1s", took)
		}
		began = time.Now()
		if _, err := other.Request(http.MethodGet).Path("/version").Do(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("another client waited for %s: %v", time.Since(began), err)
		}
		if _, err := one.Request(http.MethodGet).Path("/api/v1/pods").Param("watch", "true").Do(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("a watch waited for %s: %v", time.Since(began), err)
		}
	})
}

func TestARequestThatGivesUpWaitingWasNotSent(t *testing.T) {
	config := &rest.Config{Host: "http://in-memory", Transport: tripper(func(r *http.Request) (*http.Response, error) {
		return answer(r, http.StatusOK, "{}"), nil
	})}
	(&rateLimit{perSecond: 0.001, burst: 1}).limit(config)
	c := newClient(t, config)
	if _, err := c.Request(http.MethodGet).Path("/version").Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // less than its turn is away
	defer cancel()
	_, err := c.Request(http.MethodPost).Path("/version").Body("text/plain", []byte("x")).Do(ctx)
	if _, unsent := errors.AsType[*client.NotSentError](err); !unsent {
		t.Errorf("%v, want one that was not sent", err)
	}
}

func newClient(t *testing.T, config *rest.Config) *client.Client {
	t.Helper()
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
