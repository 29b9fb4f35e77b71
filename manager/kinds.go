// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Times of the kinds of a server.
const (
	kindsTime  = 10 * time.Second // that a discovery may take
	kindsAgain = 10 * time.Second // between two discoveries
)

// kinds has the resources of the kinds that a server serves. The API server decides about rights by resources, and the
// record has kinds. It is safe for concurrent use.
type kinds struct {
	discover func(context.Context) ([]client.Served, error)

	mu    sync.Mutex
	known map[schema.GroupKind]object.Resource
	at    time.Time // of the last discovery
}

// resource returns the resource of a kind, and whether the server serves it. A kind that is not known yet begins a
// discovery, at most every kindsAgain.
func (k *kinds) resource(ctx context.Context, group, kind string) (object.Resource, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := schema.GroupKind{Group: group, Kind: kind}
	if r, known := k.known[of]; known || !k.at.IsZero() && time.Since(k.at) < kindsAgain {
		return r, known
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), kindsTime) // others wait for the answer
	defer cancel()
	found, _ := k.discover(ctx) // a kind of a group that does not answer is not shown
	k.at = time.Now()
	if len(found) > 0 {
		k.known = make(map[schema.GroupKind]object.Resource, len(found))
	}
	for _, s := range found {
		k.known[schema.GroupKind{Group: s.Group, Kind: s.Kind}] = s.Resource
	}
	r, known := k.known[of]
	return r, known
}
