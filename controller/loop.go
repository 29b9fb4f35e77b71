// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// worker takes keys until the queue has shut down. ctx ends when no further key
// is to be taken, work when the runs under way must end.
func (c *Keyed[K]) worker(ctx, work context.Context) {
	for {
		item, ok := c.queue.Get()
		if !ok {
			return
		}
		if ctx.Err() != nil {
			c.queue.Done(item.Key)
			continue
		}
		c.run(work, item)
	}
}

// run works on one key.
func (c *Keyed[K]) run(ctx context.Context, item workqueue.Item[K]) {
	run := &runContext[K]{Context: ctx, loop: c, key: item.Key, causes: item.Causes, notes: notes{writes: writes{loop: &c.core}}}
	var runCtx context.Context = run
	if !c.staleReads || c.recorder != nil {
		runCtx = client.WithRecorder(runCtx, &run.notes)
	}
	if c.recorder != nil && c.recorder.Propagates() {
		run.contexts = c.contextsOf(item.Key, item.Causes)
	}
	if c.timeout > 0 {
		var cancel context.CancelFunc
		runCtx, cancel = context.WithTimeout(runCtx, c.timeout)
		defer cancel()
	}
	req := RequestOf[K]{Key: item.Key, Causes: item.Causes, Attempt: item.Attempt, Unseen: c.own.overdueOf(item.Key), loop: c}
	result, err := c.call(runCtx, &run.notes, req)
	outcome, next := c.after(ctx, req, result, err)
	place := c.recordRun(&item, &run.notes, outcome, err, next)
	// The key is done when the informers have seen what was written. Until then the queue
	// merges whatever is added for it and hands it to no worker; the worker is free for
	// other keys.
	c.own.settle(ctx, item.Key, run.writes.take(), place)
}

// call contains panics.
func (c *Keyed[K]) call(ctx context.Context, n *notes, req RequestOf[K]) (result Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			n.panicked = true
			c.contain("the reconciler", "the run has failed", textOf(req.Key), p)
			err = fmt.Errorf("reconciling %v: panic: %v", req.Key, p)
		}
	}()
	return c.reconcile(ctx, req)
}

// after decides when the key comes again. It returns how the run ended, and in which time the key comes again; 0 if
// no time is known.
func (c *Keyed[K]) after(ctx context.Context, req RequestOf[K], result Result, err error) (outcome runs.Outcome, next time.Duration) {
	key := req.Key
	row := c.failures.note(key, err)
	switch {
	case err == nil && result.Again && result.After <= 0:
		cause := workqueue.Cause{Source: c.name, Verb: workqueue.Timer}
		return runs.Again, c.queue.Retry(workqueue.Add{Cause: cause}, key)
	case err == nil:
		c.queue.Forget(key)
		if result.After <= 0 {
			return runs.Done, 0
		}
		c.queue.AddWith(workqueue.Add{After: result.After, Cause: workqueue.Cause{Source: c.name, Verb: workqueue.Timer}}, key)
		return runs.Again, result.After
	case ctx.Err() != nil:
		c.log.Warn("a run was ended by the stop", "object", textOf(key), "error", err)
		return runs.Stopped, 0
	case isTerminal(err):
		c.log.Warn("giving up until something changes", "object", textOf(key), "error", err)
		c.giveUp(req, err)
		return runs.GivenUp, 0
	case c.maxRetries > 0 && row > c.maxRetries:
		c.log.Error("giving up until something changes: too many failures", "object", textOf(key), "retries", row-1, "error", err)
		c.giveUp(req, err)
		return runs.GivenUp, 0
	}
	c.report(key, row, err)
	next = c.queue.Retry(workqueue.Add{Cause: workqueue.Cause{Source: c.name, Verb: workqueue.Retry}}, key)
	if result.Always && result.After > 0 && result.After < next {
		next = result.After
		c.queue.AddWith(workqueue.Add{After: next, Cause: workqueue.Cause{Source: c.name, Verb: workqueue.Timer}}, key)
	}
	return runs.Failed, next
}

// giveUp leaves a key alone until something changes.
func (c *Keyed[K]) giveUp(req RequestOf[K], err error) {
	c.queue.Forget(req.Key)
	c.failures.givenUp(req.Key)
	if c.givingUp == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			c.contain("what is called when a key is given up", "it may not have done all", textOf(req.Key), p)
		}
	}()
	c.givingUp(req, err)
}

// report logs a failure that will be retried: conflicts are everyday life, a
// missing right is said once, and of a row of failures of one key the first, the
// second, the fourth, the eighth and so on are.
func (c *Keyed[K]) report(key K, failures int, err error) {
	switch {
	case apierrors.IsConflict(err):
		c.log.Debug("conflict, trying again", "object", textOf(key), "error", err)
	case client.LacksRight(err):
		if c.refusals.first(err) {
			c.log.Error("the credentials lack a right; trying again until they have it", "object", textOf(key), "error", err)
		}
	case bits.OnesCount(uint(failures)) == 1:
		c.log.Warn("failed, trying again", "object", textOf(key), "failures", failures, "error", err)
	}
}

// refusals remembers which missing rights have been reported.
type refusals struct {
	mu   sync.Mutex
	said map[string]time.Time
}

// A missing right is logged again after a while: an administrator may believe that it was
// granted.
const refusalRepeat = 10 * time.Minute

// maxRefusals bounds what is remembered; the texts name namespaces.
const maxRefusals = 1000

// first reports whether the right that err lacks has not been reported lately. The
// server's words before "cannot" name the object; what matters is the rest, which
// names verb, resource and scope.
func (r *refusals) first(err error) bool {
	text := err.Error()
	if _, after, found := strings.Cut(text, " cannot "); found {
		text = after
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if said, ok := r.said[text]; ok && time.Since(said) < refusalRepeat {
		return false
	}
	if r.said == nil || len(r.said) >= maxRefusals {
		r.said = map[string]time.Time{}
	}
	r.said[text] = time.Now()
	return true
}
