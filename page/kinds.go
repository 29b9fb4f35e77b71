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
	ctx, cancel := context.WithTimeout(ctx, memoTime)
	defer cancel()
	served, err := discovery.Ask(ctx, k.client().Discover)
	if partly := (*client.DiscoveryError)(nil); err != nil && !errors.As(err, &partly) {
		if found {
			return r, found, nil // as it was the last time
		}
		return object.Resource{}, false, err
	}
	k.known, k.at = served, time.Now()
	r, found = k.find(group, kind)
	return r, found, nil
}

func (k *kinds) find(group, kind string) (object.Resource, bool) {
	for _, s := range k.known {
		if s.Group == group && (s.Plural == kind || strings.EqualFold(s.Kind, kind)) && s.Can("get") {
			return s.Resource, true
		}
	}
	return object.Resource{}, false
}
