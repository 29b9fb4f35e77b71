// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// verify reads an owner that no informer has shown from the server, under each name that
// dependents have for it. It reads again, less and less often, for as long as one of the
// names may still be true: the owner may be of a kind that cannot be watched, or is not
// served now; and if a watch broke, the owner may have been created and deleted
// meanwhile.
func (c *collector) verify(ctx context.Context, uid types.UID, claims []reference) (controller.Result, error) {
	type place struct {
		object.Resource
		object.Key
	}
	asked := map[place]verdict{}
	open := false
	var errs []error
	for _, ref := range claims {
		r, _ := c.world.resource(ref.kind)
		key, _ := keyOf(r, ref)
		a, known := asked[place{r, key}]
		switch {
		case !known:
			var err error
			if a, err = c.ask(ctx, ref); err != nil {
				errs = append(errs, err)
				continue
			}
			asked[place{r, key}] = a
		case a == absent: // a cluster-scoped owner has no namespace
			c.refute(ref)
		}
		open = open || a != absent
	}
	if len(errs) > 0 || !open {
		return controller.Result{}, errors.Join(errs...)
	}
	c.becauseUnknown(ctx, uid)
	c.mu.Lock()
	times := c.graph.ask(uid)
	c.mu.Unlock()
	return controller.Result{After: pause(times)}, nil
}

// pause is how long to wait after that many reads of an owner.
func pause(times int) time.Duration {
	after := askFirst
	for range times - 1 {
		if after = 2 * after; after >= askMost {
			return askMost
		}
	}
	return after
}

// finish removes the finalizer of an object that waited for its dependents. None is left
// that it has to wait for.
func (c *collector) finish(ctx context.Context, t target) error {
	return c.write(ctx, t, change{finalizer: metav1.FinalizerDeleteDependents})
}

// unblock changes the references of an object so that owners for which it waits itself do
// not wait for it.
func (c *collector) unblock(ctx context.Context, t target, owners []types.UID) error {
	return c.write(ctx, t, change{unblock: owners})
}

// orphan removes the references to an object from all its dependents, and after that the
// finalizer of the object.
func (c *collector) orphan(ctx context.Context, t target) error {
	done := map[types.UID]bool{}
	for {
		var todo []target
		for _, dependent := range c.dependents(t.uid) {
			if !done[dependent.uid] {
				done[dependent.uid] = true
				todo = append(todo, dependent)
			}
		}
		if len(todo) == 0 {
			break
		}
		if err := c.removeReferences(ctx, t, todo); err != nil {
			return err
		}
		// New dependents may have appeared meanwhile.
	}
	return c.write(ctx, t, change{finalizer: metav1.FinalizerOrphanDependents})
}

// removeReferences removes the references to owner from dependents.
func (c *collector) removeReferences(ctx context.Context, owner target, dependents []target) error {
	errs := make([]error, len(dependents))
	c.each(len(dependents), func(i int) {
		errs[i] = c.write(ctx, dependents[i], change{drop: []types.UID{owner.uid}})
	})
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("orphaning the dependents of %s: %d of %d failed, the first with: %w", owner.key, len(failed), len(dependents), failed[0])
}

// orphansAtOnce is how many dependents one worker orphans at a time for one owner.
const orphansAtOnce = 20

// someAtOnce calls do for 0 to n-1, orphansAtOnce at a time.
func someAtOnce(n int, do func(int)) {
	var running sync.WaitGroup
	next := make(chan int)
	for range min(n, orphansAtOnce) {
		running.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	running.Wait()
}
