// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// Without a manager the source says what it waits for, once. When one answers it has its state, and says so.
func TestTheSourceWaitsForAManager(t *testing.T) {
	leases := fakeapi.New().Serve(object.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true})
	c, err := client.New(leases.Config())
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	s := &source{client: c, config: leases.Config(), say: func(text string) { said = append(said, text) }}
	for range 3 {
		s.at = s.at.Add(-lookAgain)
		if _, err := s.Overview(t.Context()); err == nil || !strings.Contains(err.Error(), "no manager of Setpoint has announced itself") {
			t.Errorf("without a manager: %v", err)
		}
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "waits for a manager: ") || !strings.Contains(said[0], "what the cluster alone knows") {
		t.Errorf("the user reads %q", said)
	}
}

// A manager that goes away is looked for again.
func TestTheSourceFindsAManagerThatComesBack(t *testing.T) {
	var away atomic.Bool
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		_, _ = w.Write([]byte(`{"instance":"node-2","state":"working"}`))
	}))
	defer pages.Close()
	var said []string
	s := &source{named: pages.URL + "/", say: func(text string) { said = append(said, text) }}
	overview := func() (string, error) {
		s.at = s.at.Add(-lookAgain)
		o, err := s.Overview(t.Context())
		return o.Instance, err
	}
	if name, err := overview(); err != nil || name != "node-2" {
		t.Fatalf("the manager is %q, %v", name, err)
	}
	away.Store(true)
	if _, err := overview(); err == nil {
		t.Error("a manager that does not answer is no error")
	}
	away.Store(false)
	if name, err := overview(); err != nil || name != "node-2" {
		t.Errorf("the manager that is back is %q, %v", name, err)
	}
	if len(said) != 3 || said[0] != "the manager is at "+pages.URL || !strings.HasPrefix(said[1], "waits for the manager: ") || said[2] != said[0] {
		t.Errorf("the user reads %q", said)
	}
}

// An answer that is no state of a manager is named.
func TestTheSourceSaysWhatAManagerAnswers(t *testing.T) {
	for body, want := range map[string]string{"no": "403 Forbidden: no", "{": "cannot read"} {
		s := &source{say: func(string) {}, get: func(context.Context, string) (int, []byte, error) {
			if body == "no" {
				return http.StatusForbidden, []byte(body), nil
			}
			return http.StatusOK, []byte(body), nil
		}}
		if _, err := s.Overview(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", body, err, want)
		}
	}
	gone := errors.New("gone")
	s := &source{say: func(string) {}, get: func(context.Context, string) (int, []byte, error) { return 0, nil, gone }}
	if _, err := s.Record().Newest(t.Context(), runs.Query{}); !errors.Is(err, gone) {
		t.Errorf("the record of a manager that is gone: %v", err)
	}
}
