// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"errors"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/manager"
)

// tripper is a transport of one function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A limit or a token may take its time. What it was certain of before is old then.
func TestTheFenceStandsBehindWhateverAConfigurationWraps(t *testing.T) {
	config := &rest.Config{Host: "http://in-memory", Transport: tripper(func(r *http.Request) (*http.Response, error) {
		t.Errorf("%s %s was sent without a lease", r.Method, r.URL)
		return nil, errors.New("no server")
	})}
	passed := 0
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			passed++
			return next.RoundTrip(r)
		})
	})
	m, err := manager.New(config, manager.LeaderElection(locked))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.For[*corev1.Pod](m.Client()).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
	if _, refused := errors.AsType[*client.NotSentError](err); !refused {
		t.Errorf("%v, want a write that is not sent", err)
	}
	if passed != 1 {
		t.Errorf("the configuration's own transport was passed %d times before the fence, want once", passed)
	}
}
