// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	"github.com/setpoint-io/setpoint/runs"
)

// Reason is why a controller did not do something, or what it waits for. See [Because].
type Reason = runs.Reason

// Param is a parameter of a [Reason].
type Param = runs.Param

// Because states why the run does not do something, or what it waits for. ctx is the context that the Reconciler was
// called with. The reasons of the last run for a key are the present ones: a run states its reasons each time, also if
// nothing has changed. A run keeps its first eight. The time of [Result] says when the controller looks again.
//
// Because may be called from any goroutine of the run. Without a record of runs it does nothing.
func Because(ctx context.Context, reason Reason) {
	if run, ok := ctx.Value(runKey{}).(interface{ because(Reason) }); ok {
		run.because(reason)
	}
}

// because notes a reason, once.
func (n *notes) because(reason Reason) {
	if n.writes.loop.recorder == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, known := range n.reasons {
		if known.Code == reason.Code && known.Sentence() == reason.Sentence() {
			return
		}
	}
	n.reasons = append(n.reasons, reason)
}

// With returns the parameters of a [Reason] from names and values in turn. It uses fmt.Sprint for the values.
func With(namesAndValues ...any) []Param {
	params := make([]Param, 0, (len(namesAndValues)+1)/2)
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		params = append(params, Param{Name: fmt.Sprint(namesAndValues[i]), Value: fmt.Sprint(namesAndValues[i+1])})
	}
	return params
}
