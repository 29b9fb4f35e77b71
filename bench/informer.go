// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/object"
)

// An informer is what is measured: Setpoint's or client-go's, of one kind, used as
// their documentation says, with one handler. Its methods do what a user writes
// for the purpose, and nothing else.
type informer interface {
	// sync starts it and returns when it has the state, and the handler too.
	sync(ctx context.Context) error
	// stop ends it and returns when nothing of it runs.
	stop()
	// stored is the version up to which the store has been written.
	stored() (uint64, error)
	// keys are those of all objects, in no order.
	keys() []object.Key
	// get returns a decoded object.
	get(key object.Key) (object.Object, error)
	// listNamespace and listSelected decode the objects of a namespace, or those
	// that match, and return how many there are.
	listNamespace(namespace string) (int, error)
	listSelected(selector labels.Selector) (int, error)
	// countSelected reads the metadata of the objects that match, and returns how many there are.
	countSelected(selector labels.Selector) (int, error)
	// walk goes through everything without decoding it and returns how much it is.
	walk() int
}

// newInformer makes the informer of a side. It does nothing before sync.
func newInformer(s *sideSpec, from *server, h *handler) (informer, error) {
	k, err := kindNamed(s.Kind)
	if err != nil {
		return nil, err
	}
	if s.Side == setpointSide {
		return newSetpointInformer(k, from, h, s.Budget)
	}
	return newClientGoInformer(k, from, h, s.Side == transformSide)
}

// handler is what both sides tell of changes.
type handler struct {
	decode  atomic.Bool   // it wants the object too, not the metadata alone
	newest  atomic.Uint64 // the last version that it was notified of
	at      atomic.Int64  // when that was, in nanoseconds since began
	began   time.Time
	matched atomic.Uint64 // objects of one team
	failed  atomic.Pointer[error]
}

// team is the label that handlers and selectors look for.
const team = "payments"

// told records a notification of the handler.
func (h *handler) told(version, teamLabel string) {
	if teamLabel == team {
		h.matched.Add(1)
	}
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		h.fail(fmt.Errorf("a handler was notified of version %q: %w", version, err))
		return
	}
	h.at.Store(int64(time.Since(h.began)))
	h.newest.Store(v)
}

func (h *handler) fail(err error) { h.failed.CompareAndSwap(nil, &err) }

// wait returns when the handler has been notified of a version.
func (h *handler) wait(ctx context.Context, version uint64) error {
	return until(ctx, fmt.Sprintf("the handler to be notified of version %d", version), func() (bool, error) {
		if err := h.failed.Load(); err != nil {
			return false, *err
		}
		return h.newest.Load() >= version, nil
	})
}

// until looks again and again, quickly enough for what is measured in tenths of
// seconds, until f says that it is so.
func until(ctx context.Context, what string, f func() (bool, error)) error {
	for {
		so, err := f()
		if so || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}
