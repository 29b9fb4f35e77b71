// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/manager"
)

// State is the state of a manager and of its loops.
type State struct {
	manager.Overview
	// URL is where another process serves its pages; empty for the manager of this process.
	URL string
}

// States are the states of the managers that answered, that of this process first.
type States struct {
	Known []State
	// Unread are sentences about managers that did not answer.
	Unread []Unread
}

// Unread is a manager that did not answer, or a search that failed.
type Unread struct {
	URL  string // of the manager; empty if it is not known
	Text string
}

// patience is how long all managers together may take to answer.
const patience = 4 * time.Second

// mostRepeated is how many bytes of an answer an error repeats.
const mostRepeated = 200

// Overviews returns the states of all managers. It is an error if none answers.
func (m *Managers) Overviews(ctx context.Context) (States, error) {
	states := m.Own()
	found, unread, err := m.others(ctx)
	for _, why := range unread {
		states.Unread = append(states.Unread, Unread{Text: why})
	}
	if err != nil {
		if len(states.Known) == 0 {
			return states, err
		}
		states.Unread = append(states.Unread, Unread{Text: err.Error()})
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers, errs := make([]manager.Overview, len(found)), make([]error, len(found))
	var asking sync.WaitGroup
	for i, one := range found {
		asking.Go(func() { answers[i], errs[i] = one.overview(ctx) })
	}
	asking.Wait()
	var texts []error
	for i, one := range found {
		if errs[i] != nil {
			texts = append(texts, errs[i])
			states.Unread = append(states.Unread, Unread{URL: one.URL, Text: errs[i].Error()})
			continue
		}
		states.Known = append(states.Known, State{answers[i], one.URL})
	}
	m.mu.Lock()
	m.tell()
	m.mu.Unlock()
	if len(states.Known) == 0 {
		return states, errors.Join(texts...)
	}
	return states, nil
}

// Own returns the state of the manager of this process, if there is one. It costs no request.
func (m *Managers) Own() (states States) {
	if m.options.Own != nil {
		states.Known = []State{{Overview: m.options.Own.Overview()}}
	}
	return states
}

// overview reads the state of the manager.
func (o *other) overview(ctx context.Context) (state manager.Overview, err error) {
	code, body, err := o.read(ctx, "/debug/controllers?format=json")
	switch {
	case err != nil:
		return state, err
	case code == http.StatusUnauthorized:
		return state, fmt.Errorf("the manager at %s requires authentication: there is no client certificate, and tokens are not sent to an address that a Lease names", o.URL)
	case code != http.StatusOK:
		return state, fmt.Errorf("the manager at %s answers %d %s: %s", o.URL, code, http.StatusText(code), strings.TrimSpace(string(body[:min(len(body), mostRepeated)])))
	}
	if err := json.Unmarshal(body, &state); err != nil {
		return state, fmt.Errorf("the manager at %s answers what this version of setpoint cannot read: %w", o.URL, err)
	}
	return state, nil
}
