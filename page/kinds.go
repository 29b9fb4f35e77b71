// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
)

// kinds knows which kinds the API server serves. It is safe for concurrent use.
type kinds struct {
	client func() *client.Client

	mu    sync.Mutex
	known []client.Served
	at    time.Time // when they were discovered
}

// How long the known kinds are used, and how long at least if one is asked for that is not there.
const (
	kindsLast  = 5 * time.Minute
	kindsLeast = 5 * time.Second
)

// named returns the resource that an address names, by its plural or its kind.
func (k *kinds) named(ctx context.Context, group, kind string) (object.Resource, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := time.Since(k.at)
	r, found := k.find(group, kind)
	if found && age < kindsLast || !found && age < kindsLeast {
		return r, found, nil
	}
	if err := k.discover(ctx); err != nil {
		if found {
			return r, found, nil // as it was the last time
		}
		return object.Resource{}, false, err
	}
	r, found = k.find(group, kind)
	return r, found, nil
}

// all returns the kinds that the server serves. The caller must not change them.
func (k *kinds) all(ctx context.Context) ([]client.Served, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.at) < kindsLast {
		return k.known, nil
	}
	if err := k.discover(ctx); err != nil && len(k.known) == 0 {
		return nil, err
	}
	return k.known, nil // if the server does not answer, as it was the last time
}

// discover asks the server for its kinds. The caller holds the lock.
func (k *kinds) discover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, memoTime)
	defer cancel()
	served, err := discovery.Ask(ctx, k.client().Discover)
	if partly := (*client.DiscoveryError)(nil); err != nil && !errors.As(err, &partly) {
		return err
	}
	k.known, k.at = served, time.Now()
	return nil
}

func (k *kinds) find(group, kind string) (object.Resource, bool) {
	for _, s := range k.known {
		if s.Group == group && (s.Plural == kind || strings.EqualFold(s.Kind, kind)) && s.Can("get") {
			return s.Resource, true
		}
	}
	return object.Resource{}, false
}
