// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package because

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/runs"
)

// resting is a record that is not asked for a while after an error, so that one silent manager does not delay the answers of
// the others.
type resting struct {
	gather.Record
	within time.Duration // how long a request may take

	mu    sync.Mutex
	until time.Time
}

var errRests = errors.New("the manager did not answer a moment ago")

// joined joins the records of managers, which have to answer within a time.
func joined(all []gather.Record, within time.Duration) gather.Record {
	resters := make([]gather.Record, len(all))
	for i, r := range all {
		resters[i] = &resting{Record: r, within: within}
	}
	return gather.Joined(resters...)
}

// About implements gather.Record. A request that was cut off when it was young says nothing about the manager.
func (r *resting) About(ctx context.Context, o runs.Object) (gather.Found, error) {
	r.mu.Lock()
	rests := time.Now().Before(r.until)
	r.mu.Unlock()
	if rests {
		return gather.Found{}, errRests
	}
	began := time.Now()
	found, err := r.Record.About(ctx, o)
	if err != nil && (ctx.Err() == nil || time.Since(began) >= r.within/2) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.until = time.Now().Add(Pause)
	}
	return found, err
}
