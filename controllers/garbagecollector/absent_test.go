// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/object"
)

// What the server has said of an owner holds for all who name it, those included who do
// so later while it is remembered. They themselves are not read at all.
func TestAnOwnerThatIsAbsentIsNotAskedForByEachWhoNamesIt(t *testing.T) {
	const early, late = 100, 50
	s := newScene(t)
	nobody := made{Resource: configMaps, Key: object.Key{Name: "nobody"}, uid: "8a1d3a7e-0000-4000-8000-000000000000"}
	staying := s.make(configMaps, "staying")
	var dependents, kept []made
	name := func(n int, of string) {
		for i := range n {
			dependents = append(dependents, s.make(configMaps, fmt.Sprintf("%s-%d", of, i), nobody.owns()))
		}
		// It keeps the claim known.
		kept = append(kept, s.make(configMaps, "kept-"+of, nobody.owns(), staying.owns()))
	}
	name(early, "early")

	var owner, others atomic.Int32
	config := rest.CopyConfig(s.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			// Answers that say no are counted, too.
			if at, isOne := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/"+s.namespace+"/configmaps/"); isOne && r.Method == http.MethodGet {
				if at == nobody.Name {
					owner.Add(1)
				} else {
					others.Add(1)
				}
			}
			return next.RoundTrip(r)
		})
	})
	s.collect(config)
	s.goes(dependents...)
	name(late, "late")
	s.goes(dependents...)
	for _, k := range kept {
		s.eventually(func() string {
			if o := s.get(k); len(o.OwnerReferences) != 1 {
				return fmt.Sprintf("%s has the owners %v", k.Key, o.OwnerReferences)
			}
			return ""
		})
	}
	s.rests()
	t.Logf("%d reads of the owner, %d of others", owner.Load(), others.Load())
	// 20 workers begin at the same time, and whenever nobody names the owner any more it is
	// forgotten, and asked for again with the next of the late ones: at most once for each.
	if n := owner.Load(); n == 0 || n > 20+late+1 {
		t.Errorf("%d reads of the owner for %d dependents", n, early+late)
	}
	if n := others.Load(); n > 10 {
		t.Errorf("%d reads of the dependents", n)
	}
}
