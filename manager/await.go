// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/pause"
)

// How often a server that does not answer is asked again.
const (
	askFirst = 250 * time.Millisecond
	askMost  = 5 * time.Second
)

// waitForServer waits until the server answers, and says once for each reason
// what it waits for. A server that answers with a refusal answers: what is
// refused is for the controllers to find out.
func (m *Manager) waitForServer(ctx context.Context) error {
	said := ""
	for wait := askFirst; ; wait = min(2*wait, askMost) {
		ask, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := m.client.Request(http.MethodGet).Path("/version").Do(ask)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var advice string
		switch {
		case err == nil, apierrors.IsForbidden(err):
			if said != "" {
				m.log.Warn("the server answers", "server", m.client.Server())
			}
			m.answered.Store(true)
			return nil
		case apierrors.IsUnauthorized(err):
			advice = "the server does not accept the credentials; are they of another cluster, or expired?"
		case client.Unreachable(err):
			advice = "the server cannot be reached; is it running, and is the address right?"
		default:
			advice = "the server does not answer as it should"
		}
		if advice != said {
			said = advice
			m.log.Warn("waiting for the server", "reason", advice, "server", m.client.Server(), "error", err)
		}
		if !pause.For(ctx, wait) {
			return ctx.Err()
		}
	}
}
