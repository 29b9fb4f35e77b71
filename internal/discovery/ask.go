// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/client"
)

// Patience is how long one discovery may take.
// Source: k8s.io/client-go/discovery, defaultTimeout.
const Patience = 32 * time.Second

// errNoAnswer is the cause of the end of a discovery that took too long.
var errNoAnswer = fmt.Errorf("no answer within %s: %w", Patience, context.DeadlineExceeded)

// Ask calls discover, such as [client.Client.Discover], and gives up after [Patience]: a server
// that does not answer must not keep the caller from another try.
func Ask(ctx context.Context, discover func(context.Context) ([]client.Served, error)) ([]client.Served, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, errNoAnswer)
	defer cancel()
	return discover(ctx)
}
