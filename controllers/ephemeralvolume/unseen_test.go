// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ephemeralvolume

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/managertest"
)

// The watch of claims breaks, and a claim of another owner comes and goes before the next one. The cache shows nothing of it.
func TestAPodGetsItsClaimAfterAnotherOneThatTheCacheNeverShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t).start()
		c.claims.HoldWatches(true)
		foreign := c.addClaim("web-cache")
		c.addPod("web", "cache")
		c.claims.Remove(foreign)
		c.Compact(c.ResourceVersion())
		c.CutConnections()
		time.Sleep(time.Minute)
		managertest.Settle() // the informer lists again
		c.claims.HoldWatches(false)
		time.Sleep(time.Hour)
		managertest.Settle()
		c.want("an hour after the other claim", "ns/web-cache")
	})
}
