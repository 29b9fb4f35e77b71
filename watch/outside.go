// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/wire"
)

// outside remembers which kinds without namespaces this account may not list. A watch of every kind
// in some namespaces leaves them out: an account with rights in these namespaces alone is no
// mistake to warn of. The zero value remembers nothing.
type outside struct {
	refused map[place]time.Time // and when they were refused
}

const (
	// outsideAgain is when a kind that was refused is tried again: rights may be given meanwhile.
	outsideAgain = time.Minute
	// outsideAtOnce is how many kinds are tried at a time.
	outsideAtOnce = 8
	// outsidePatience is how long the server may take for the first object of a kind.
	outsidePatience = 5 * time.Second
)

// filter returns the kinds without those that are not in namespaces and may not be read. Kinds that
// are followed already are not tried.
func (o *outside) filter(ctx context.Context, w *Watch, wanted []wish) []wish {
	if o.refused == nil {
		o.refused = map[place]time.Time{}
	}
	var mu sync.Mutex
	var trying sync.WaitGroup
	slots := make(chan struct{}, outsideAtOnce)
	for _, s := range wanted {
		p := place{group: s.Group, plural: s.Plural}
		if s.Namespaced || w.follows(p) {
			continue
		}
		mu.Lock()
		at, refused := o.refused[p]
		mu.Unlock()
		if refused && time.Since(at) < outsideAgain {
			continue
		}
		slots <- struct{}{}
		trying.Go(func() {
			defer func() { <-slots }()
			may := mayList(ctx, w.host.Client(), s.Served)
			mu.Lock()
			defer mu.Unlock()
			if may {
				delete(o.refused, p)
				return
			}
			if _, known := o.refused[p]; !known {
				w.log.Info("a kind without namespaces may not be read, and is left out", "kind", s.Resource.String())
			}
			o.refused[p] = time.Now()
		})
	}
	trying.Wait()
	return slices.DeleteFunc(slices.Clone(wanted), func(s wish) bool {
		_, refused := o.refused[place{group: s.Group, plural: s.Plural}]
		return refused && !s.Namespaced
	})
}

// errEnough ends a list after its first object.
var errEnough = errors.New("enough was read")

// mayList reports whether the server lists a kind for this account. Errors other than a missing
// right count as yes: the informer logs them and tries again.
func mayList(ctx context.Context, c *client.Client, s client.Served) bool {
	ctx, cancel := context.WithTimeout(ctx, outsidePatience)
	defer cancel()
	_, err := c.List(ctx, s.Resource, client.Selection{MetadataOnly: true}, client.ListOptions{PageSize: 1}, func(wire.Encoding, []byte) error { return errEnough })
	return !apierrors.IsForbidden(err)
}

// follows reports whether a place is followed.
func (w *Watch) follows(p place) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.followers[p] != nil
}
