// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// A server sees where a request goes and from whom, also below a path of its own and with
// names that a URL must escape. The server is a raw one: what counts is the request line as
// it was sent, and fakeapi has no path of its own below which it serves.
func TestRequestsAreAddressedAndSigned(t *testing.T) {
	seen := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- fmt.Sprintf("%s %s %v as %v of %v", r.Method, r.RequestURI, r.Header["Accept"], r.Header["User-Agent"], r.Host)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	for _, test := range []struct {
		below, agent string
		request      func(*client.Client) *client.Request
		want         string
	}{
		{"", "me/1", func(c *client.Client) *client.Request {
			return c.Request(http.MethodGet).Resource(pods).Key(object.Key{Namespace: "ns", Name: "a:b c"})
		}, "GET /api/v1/namespaces/ns/pods/a:b%20c [application/json] as [me/1] of " + host},
		{"/clusters/c1/", "me/1", func(c *client.Client) *client.Request {
			return c.Request(http.MethodDelete).Resource(object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment"}).
				Param("limit", "5").Param("labelSelector", "a in (b)").Param("none", "")
		}, "DELETE /clusters/c1/apis/apps/v1/deployments?labelSelector=a+in+%28b%29&limit=5 [application/json] as [me/1] of " + host},
		{"/clusters/c1", "", func(c *client.Client) *client.Request { return c.Request(http.MethodGet).Path("readyz") },
			"GET /clusters/c1/readyz [application/json] as [" + rest.DefaultKubernetesUserAgent() + "] of " + host},
	} {
		c := newClient(t, &rest.Config{Host: s.URL + test.below, UserAgent: test.agent})
		if _, err := test.request(c).Do(t.Context()); err != nil {
			t.Error(err)
			continue
		}
		if got := <-seen; got != test.want {
			t.Errorf("the server saw\n%s, want\n%s", got, test.want)
		}
	}
}

// An answer is read whole whether the server says how long it is or not. The server is a raw
// one, whose answers have chosen lengths.
func TestAnswersOfEachLengthAreReadWhole(t *testing.T) {
	for _, length := range []int{0, 1, 511, 512, 513, 64 << 10, 64<<10 + 1, 1 << 20} {
		for _, named := range []bool{true, false} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if named {
					w.Header().Set("Content-Length", fmt.Sprint(length))
				} else if f, ok := w.(http.Flusher); ok {
					f.Flush()
				}
				fmt.Fprint(w, strings.Repeat("x", length))
			}))
			answer, err := newClient(t, &rest.Config{Host: s.URL}).Request(http.MethodGet).Path("/readyz").Do(t.Context())
			if err != nil || len(answer.Body) != length || strings.Trim(string(answer.Body), "x") != "" {
				t.Errorf("%d bytes, named %t: %d were read, %v", length, named, len(answer.Body), err)
			}
			s.Close()
		}
	}
}
