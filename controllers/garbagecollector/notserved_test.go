// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// An older server beside a newer one, and one that has lost a kind since the last
// discovery, answer with 404 about owners that are there, as about one that is not.
// Nothing may be collected by such an answer.
func TestAnAnswerThatAKindIsNotServedDoesNotMeanThatItsObjectIsAbsent(t *testing.T) {
	s := newScene(t)
	// Where the question for an owner goes instead. The answer is the server's own.
	elsewhere := map[string]string{
		"of-no-kind":    "/api/v1/namespaces/default/ghosts/x",
		"of-no-version": "/apis/apps/v9/namespaces/default/deployments/x",
		"of-no-group":   "/apis/nowhere.example.org/v1/namespaces/default/ghosts/x",
	}
	asked := map[string]*atomic.Int32{}
	var served atomic.Bool
	config := rest.CopyConfig(s.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			owner, isOne := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/"+s.namespace+"/configmaps/")
			if !isOne || elsewhere[owner] == "" || served.Load() {
				return next.RoundTrip(r)
			}
			r = r.Clone(r.Context())
			r.URL.Path = elsewhere[owner]
			response, err := next.RoundTrip(r)
			if err == nil && response.StatusCode != http.StatusNotFound {
				t.Errorf("%s is answered with %d", r.URL.Path, response.StatusCode)
			}
			asked[owner].Add(1)
			return response, err
		})
	})

	other := s.make(configMaps, "other")
	alone, both := map[string]made{}, map[string]made{}
	for name := range elsewhere {
		asked[name] = &atomic.Int32{}
		owner := made{Resource: configMaps, Key: s.key(configMaps, name), uid: types.UID("of-" + name)}
		alone[name] = s.make(configMaps, "alone-"+name, owner.owns())
		both[name] = s.make(configMaps, "both-"+name, owner.owns(), other.owns())
	}
	s.collect(config)
	for name := range elsewhere {
		// A collector that takes such an answer for an absence never asks again.
		s.eventually(func() string {
			s.owners(alone[name]) // it is there
			if n := asked[name].Load(); n < 3 {
				return fmt.Sprintf("%s was asked for %d times", name, n)
			}
			return ""
		})
	}
	s.rests()
	for name := range elsewhere {
		s.keeps(alone[name], name)
		s.keeps(both[name], name, "other")
	}
	served.Store(true)
	for name := range elsewhere {
		s.goes(alone[name])
		s.keeps(both[name], "other")
	}
}
