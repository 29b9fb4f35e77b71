// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"testing"
	"testing/synctest"
)

// A select takes any of the channels that are ready, and the last one may be ready together with an end. One try would
// see it in half of the cases.
func TestAGateIsDoneIfItsLastChannelAndAnEndAreReadyTogether(t *testing.T) {
	for name, end := range map[string]func(*ends) *<-chan struct{}{
		"view":    func(e *ends) *<-chan struct{} { return &e.view },
		"cache":   func(e *ends) *<-chan struct{} { return &e.cache },
		"handler": func(e *ends) *<-chan struct{} { return &e.handler },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for range 100 {
					first, last, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
					var e ends
					*end(&e) = ended
					g := newGate("pods", []<-chan struct{}{first, last}, e)
					done := g.Done()
					synctest.Wait() // the gate waits for the first channel
					close(first)
					close(last)
					close(ended)
					synctest.Wait()
					if g.holds() != isClosed(done) {
						t.Fatalf("has synced: %t, done: %t", g.holds(), isClosed(done))
					}
				}
			})
		})
	}
}
