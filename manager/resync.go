// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/setpoint-io/setpoint/internal/pause"
)

// Resync has each controller that is added look at all its objects again from time to time,
// changed or not. The period of each is random, between least and twice that, so that not all
// do it at once; see [controller.Resync]. A controller with a period of its own keeps it. The
// default, 0, is never, and so is less.
func Resync(least time.Duration) Option { return func(m *Manager) { m.resync = least } }

// ResyncPeriod is one for a controller. Source of the factor: k8s.io/kubernetes,
// cmd/kube-controller-manager/app, ResyncPeriod.
func (m *Manager) ResyncPeriod() time.Duration {
	if m.resync <= 0 {
		return 0
	}
	return upToTwice(m.resync)
}

// upToTwice is a random time from d to twice d.
func upToTwice(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 + rand.Float64()))
}

// StartInterval has each controller wait before it starts, for a random time between least
// and twice that, so that not all of them ask the server at once. The default is not to wait.
// Source of the factor: k8s.io/kubernetes, cmd/kube-controller-manager/app,
// ControllerStartJitter.
func StartInterval(least time.Duration) Option { return func(m *Manager) { m.startInterval = least } }

// waitToStart waits until a part may start, or is no longer to.
func (m *Manager) waitToStart(ctx context.Context) {
	if m.startInterval <= 0 {
		return
	}
	pause.For(ctx, upToTwice(m.startInterval))
}
