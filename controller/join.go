// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/setpoint-io/setpoint/cache"
)

// Loop is a loop whatever its keys are, as who runs it and looks at it sees it: a
// *[Controller] and any other *[Keyed] is one.
type Loop interface {
	Runnable
	Bind(Host) error
	Status(keys int) Status
	Informers() []cache.Handle
}

// Joined is a controller of several loops. Make it with [Join], run it once.
type Joined struct {
	name  string
	loops []Loop
}

// Join returns a controller of several loops, which run together: when one cannot work at
// all, the others end too. Each shows by its own name wherever a controller does: on the
// debug page, in metrics, in what a stop waits for.
func Join(name string, loops ...Loop) *Joined { return &Joined{name, loops} }

// Name returns the controller's name.
func (j *Joined) Name() string { return j.name }

// Loops returns the controller's loops.
func (j *Joined) Loops() []Loop { return slices.Clone(j.loops) }

// Bind binds each loop to a host. One of them at least needs a source: the others may get
// their keys from it.
func (j *Joined) Bind(h Host) error {
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

// Run works until ctx ends and nothing of any loop runs any more.
func (j *Joined) Run(ctx context.Context) error {
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

// LoopsOf returns the loops of a Runnable: those that were joined in it, or itself if it is
// one.
func LoopsOf(r Runnable) []Loop {
	switch r := r.(type) {
	case interface{ Loops() []Loop }:
		return r.Loops()
	case Loop:
		return []Loop{r}
	}
	return nil
}
