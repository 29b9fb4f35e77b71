// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

const (
	// vigilKinds is how many kinds of a namespace are watched. Where more are left,
	// the end of these is as good a time to look again as any.
	vigilKinds = 4
	// vigilLimit ends a vigil that nothing ends. The runs of the namespace begin others.
	vigilLimit = 5 * time.Minute
)

// vigils watch the last objects of namespaces, so that a namespace is reconciled when
// they are gone and not when a time is over. A vigil that fails does no harm: the time
// comes.
type vigils struct {
	client *client.Client
	log    *slog.Logger
	start  chan vigil
}

// vigil is what is left of a namespace.
type vigil struct {
	namespace object.Key
	left      []leftover
}

func newVigils(c *client.Client, log *slog.Logger) *vigils {
	return &vigils{client: c, log: log, start: make(chan vigil)}
}

// begin watches what is left of a namespace, and nothing that was left before.
func (v *vigils) begin(ctx context.Context, namespace object.Key, left []leftover) {
	select {
	case v.start <- vigil{namespace, left}:
	case <-ctx.Done():
	}
}

// run keeps vigils until ctx ends, and adds the namespaces whose vigil came to its end.
func (v *vigils) run(ctx context.Context, add func(object.Key)) {
	var kept sync.WaitGroup
	defer kept.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type running struct {
		namespace object.Key
		end       context.CancelFunc
	}
	current := map[object.Key]*running{}
	ended := make(chan *running)
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-ended:
			r.end()
			if current[r.namespace] == r {
				delete(current, r.namespace)
			}
		case one := <-v.start:
			if before := current[one.namespace]; before != nil {
				before.end()
				delete(current, one.namespace)
			}
			if len(one.left) == 0 {
				continue
			}
			watch, end := context.WithTimeout(ctx, vigilLimit)
			r := &running{one.namespace, end}
			current[one.namespace] = r
			kept.Go(func() {
				if v.keep(watch, one.left) {
					add(one.namespace)
				}
				select {
				case ended <- r:
				case <-ctx.Done():
				}
			})
		}
	}
}

// keep watches what is left, and reports whether it has gone.
func (v *vigils) keep(ctx context.Context, left []leftover) bool {
	left = left[:min(len(left), vigilKinds)]
	errs := make([]error, len(left))
	var kinds sync.WaitGroup
	for i, l := range left {
		kinds.Go(func() { errs[i] = v.watch(ctx, l) })
	}
	kinds.Wait()
	err := errors.Join(errs...)
	if err != nil && ctx.Err() == nil {
		v.log.Debug("what is left of a namespace cannot be watched; it is read again later", "error", err)
	}
	return err == nil
}

// watch returns nil when all objects of a leftover are gone.
func (v *vigils) watch(ctx context.Context, l leftover) error {
	stream, err := v.client.Watch(ctx, l.resource, client.Selection{Namespace: l.namespace, MetadataOnly: true, WithoutManagedFields: true},
		client.WatchOptions{ResourceVersion: l.version})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // only read from
	waiting := maps.Clone(l.objects)
	for len(waiting) > 0 {
		event, err := stream.Next()
		if err != nil {
			return fmt.Errorf("watching %s in namespace %s: %w", l.resource, l.namespace, err)
		}
		switch event.Type {
		case wire.Error:
			return fmt.Errorf("watching %s in namespace %s: the server ended the watch", l.resource, l.namespace)
		case wire.Deleted:
			var o metav1.PartialObjectMetadata
			if err := stream.Encoding.Decode(event.Object, &o); err != nil {
				return fmt.Errorf("watching %s in namespace %s: %w", l.resource, l.namespace, err)
			}
			delete(waiting, o.UID)
		}
	}
	return nil
}
