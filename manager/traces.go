// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"

	"github.com/setpoint-io/setpoint/traces"
)

// Traces has the manager export the runs of its controllers as spans, from Run until all controllers have ended. Each
// manager needs an exporter of its own; nil exports nothing. Traces need the record of runs: without it, the manager logs
// that there are none.
func Traces(e *traces.Exporter) Option { return func(m *Manager) { m.traces = e } }

// traceRuns has the exporter observe the record.
func (m *Manager) traceRuns() {
	switch {
	case m.traces == nil:
	case m.runs == nil:
		m.log.Warn("runs are not traced: the record of runs is switched off")
		m.traces = nil
	default:
		m.traces.Observe(m.runs)
	}
}

// exportTraces exports spans in the background until end is called.
func (m *Manager) exportTraces() (end func()) {
	if m.traces == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	exported := make(chan struct{})
	go func() {
		defer close(exported)
		m.traces.Run(ctx)
	}()
	return func() {
		cancel()
		<-exported // which takes a second at most
	}
}
