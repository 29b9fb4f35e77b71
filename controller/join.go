// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// Loop is a loop over keys of any type, as a host sees it. Every *[Keyed] is a Loop, and so is
// every *[Controller].
type Loop interface {
	Runnable
	Bind(Host) error
	StandBy() (end func(), err error)
	Status(keys int) Status
	Informers() []cache.Handle
	KeyState(object.Key) (runs.KeyState, bool)
	UIDState(types.UID) (runs.KeyState, bool)
}

// joined is a controller of several loops.
type joined struct {
	name  string
	loops []Loop
}

// Join returns a controller of several loops, which run together: if one of them cannot run at
// all, the others end too. The debug pages, the metrics and the log of a shutdown show each
// loop by its own name. The controller runs once, and has a method Loops() []Loop for hosts.
func Join(name string, loops ...Loop) Runnable { return &joined{name, loops} }

// Name returns the controller's name.
func (j *joined) Name() string { return j.name }

// Loops returns the controller's loops.
func (j *joined) Loops() []Loop { return slices.Clone(j.loops) }

// Bind binds each loop to a host. One of them at least needs a source: the others may get
// their keys from it.
func (j *joined) Bind(h Host) error {
	sources := false
	for _, l := range j.loops {
		err := l.Bind(h)
		if err != nil && !errors.Is(err, errNoSource) {
			return fmt.Errorf("its loop %q: %w", l.Name(), err)
		}
		sources = sources || err == nil
	}
	if !sources {
		return errNoSource
	}
	return nil
}

// Run runs the loops until ctx ends, and returns when nothing of them runs any more.
func (j *joined) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(j.loops))
	var all sync.WaitGroup
	for i, l := range j.loops {
		all.Go(func() {
			if errs[i] = l.Run(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
