// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/announce"
	"github.com/setpoint-io/setpoint/manager"
)

// Options say which managers are asked.
type Options struct {
	// Client reads the Leases on which managers announce themselves.
	Client *client.Client
	// Config has the client certificate for the managers.
	Config *rest.Config
	// Named is the address of the one manager to ask. Empty: all that have announced themselves.
	Named string
	// Own is the manager of this process; nil: there is none. It is asked without a connection.
	Own *manager.Manager
	// Say tells the user which managers are found, and what is missing; nil: it is not told.
	Say func(string)
}

// Managers are the managers of a cluster. Make it with [New]. It is safe for concurrent use.
type Managers struct {
	options Options

	mu     sync.Mutex
	found  []*other
	unread []string // what of the search failed
	err    error    // why no other manager is known
	at     time.Time
	said   string
}

// How long the found managers are used: all, and if one of them does not answer or none is found.
const (
	foundLasts = 15 * time.Second
	lookAgain  = 2 * time.Second
)

// New returns the managers of a cluster. It does not connect.
func New(o Options) *Managers { return &Managers{options: o} }

// others returns the managers of other processes, and what is not known of them.
func (m *Managers) others(ctx context.Context) (found []*other, unread []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lasts := foundLasts
	if m.err != nil || slices.ContainsFunc(m.found, (*other).isSilent) {
		lasts = lookAgain
	}
	if time.Since(m.at) >= lasts {
		m.look(ctx)
	}
	return m.found, m.unread, m.err
}

// look finds the managers. The caller holds the lock.
func (m *Managers) look(ctx context.Context) {
	found, unread, err := m.announced(ctx)
	if ctx.Err() != nil {
		return // the next caller looks
	}
	var all []*other
	for _, one := range found {
		known := slices.IndexFunc(m.found, func(o *other) bool {
			return o.URL == one.URL && o.Fingerprint == one.Fingerprint
		})
		if known >= 0 {
			all = append(all, m.found[known])
			continue
		}
		next, failed := newOther(one, m.options.Config)
		if failed != nil {
			unread = append(unread, failed.Error())
			continue
		}
		all = append(all, next)
	}
	m.found, m.unread, m.err, m.at = all, unread, err, time.Now()
	m.tell()
}

// announced returns the managers that have announced themselves, without that of this process.
func (m *Managers) announced(ctx context.Context) (found []announce.Manager, unread []string, err error) {
	if m.options.Named != "" {
		return []announce.Manager{{URL: strings.TrimSuffix(m.options.Named, "/")}}, nil, nil
	}
	found, unread, err = announce.FindAll(ctx, m.options.Client)
	if m.options.Own == nil {
		return found, unread, err
	}
	var own []string
	for _, served := range m.options.Own.Addresses() {
		if at, err := announce.URL(ctx, m.options.Client, served); err == nil {
			own = append(own, at)
		}
	}
	found = slices.DeleteFunc(found, func(one announce.Manager) bool { return slices.Contains(own, one.URL) })
	if errors.Is(err, announce.ErrNone) {
		err = nil // the manager of this process is one
	}
	return found, unread, err
}

// tell tells the user about the managers, if something has changed. The caller holds the lock.
func (m *Managers) tell() {
	text := ""
	var at, missing []string
	for _, one := range m.found {
		if err := one.failure(); err != nil {
			missing = append(missing, err.Error())
		} else {
			at = append(at, one.URL)
		}
	}
	switch {
	case m.err != nil:
		text = "waits for a manager: " + m.err.Error() + "; until then the pages show what the cluster alone knows"
	case len(missing) > 0:
		text = "waits for the manager: " + strings.Join(missing, "; ")
	case len(at) == 1:
		text = "the manager is at " + at[0]
	case len(at) > 1:
		text = "the managers are at " + strings.Join(at, ", ")
	}
	if text != "" && text != m.said && m.options.Say != nil {
		m.options.Say(text)
	}
	m.said = text
}

// Look finds the managers now, and tells the user about them.
func (m *Managers) Look(ctx context.Context) { _, _, _ = m.others(ctx) }

// Client returns the client of the options.
func (m *Managers) Client() *client.Client { return m.options.Client }
