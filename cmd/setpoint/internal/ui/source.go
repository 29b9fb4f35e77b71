// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/internal/announce"
	"github.com/setpoint-io/setpoint/manager"
)

// source has the cluster, and the manager that leads. A manager that does not answer is looked for again: another one may
// lead by now. It implements page.Source.
type source struct {
	client *client.Client
	config *rest.Config
	named  string       // the address of the manager; empty: the Lease has it
	say    func(string) // tells the user about the manager

	mu      sync.Mutex
	url     string
	get     gather.Get // nil: no manager is known
	trouble error      // why not
	at      time.Time  // when it was looked for
	said    string
}

// lookAgain is how long the source waits before it looks for a manager again.
const lookAgain = 2 * time.Second

// look finds the manager, unless one is known or was looked for just now.
func (s *source) look(ctx context.Context) (gather.Get, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.get != nil || time.Since(s.at) < lookAgain {
		return s.get, s.trouble
	}
	m := announce.Manager{URL: strings.TrimSuffix(s.named, "/")}
	var err error
	if s.named == "" {
		m, err = announce.Find(ctx, s.client)
	}
	if err == nil {
		s.get, err = m.Pages(s.config)
	}
	s.at, s.trouble = time.Now(), err
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.tell("waits for a manager: " + err.Error() + "; until then the pages show what the cluster alone knows")
	default:
		s.url = m.URL
		s.tell("the manager is at " + m.URL)
	}
	return s.get, s.trouble
}

// tell says something to the user, once. The caller holds the lock.
func (s *source) tell(text string) {
	if text != s.said {
		s.said = text
		s.say(text)
	}
}

// read reads a page of the manager.
func (s *source) read(ctx context.Context, path string) (code int, body []byte, err error) {
	get, err := s.look(ctx)
	if err != nil {
		return 0, nil, err
	}
	if code, body, err = get(ctx, path); err != nil && ctx.Err() == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.get, s.trouble, s.at = nil, err, time.Now()
		s.tell("waits for the manager: " + err.Error())
	}
	return code, body, err
}

// Overview implements page.Source.
func (s *source) Overview(ctx context.Context) (o manager.Overview, err error) {
	code, body, err := s.read(ctx, "/debug/controllers?format=json")
	switch {
	case err != nil:
		return o, err
	case code != http.StatusOK:
		return o, fmt.Errorf("the manager answers %d %s: %s", code, http.StatusText(code), strings.TrimSpace(string(body[:min(len(body), 200)])))
	}
	if err := json.Unmarshal(body, &o); err != nil {
		return o, fmt.Errorf("the manager answers what this version of setpoint cannot read: %w", err)
	}
	return o, nil
}

// Record implements page.Source.
func (s *source) Record() gather.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return gather.Remote(cmp.Or(s.url, s.named), s.read)
}

// Client implements page.Source.
func (s *source) Client() *client.Client { return s.client }

// newLogger logs what goes wrong in the pages themselves.
func newLogger(to io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
