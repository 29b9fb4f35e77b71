// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

// gate is a condition that holds once several channels are closed. It implements DoneChecker of
// client-go.
type gate struct {
	name string
	done <-chan struct{}
}

// newGate returns the gate of channels. It no longer waits when the view was removed or the cache
// has ended; the condition never holds then.
func newGate(name string, channels []<-chan struct{}, removed, ended <-chan struct{}) *gate {
	if len(channels) == 1 {
		return &gate{name, channels[0]}
	}
	done := make(chan struct{})
	go func() {
		for _, c := range channels {
			select {
			case <-c:
			case <-removed:
				return
			case <-ended:
				return
			}
		}
		close(done)
	}()
	return &gate{name, done}
}

// Name returns what the condition is about.
func (g *gate) Name() string { return g.name }

// Done returns a channel that is closed when the condition holds.
func (g *gate) Done() <-chan struct{} { return g.done }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
