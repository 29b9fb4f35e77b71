// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

// outage is how long the server is away: longer than any first retry, and than
// the time in which a broken connection is noticed.
const outage = 20 * time.Second

// maxOutageLines is how much the manager may have to say of an outage: a line for
// each of its informers and controllers when it begins, and when it ends, and for
// the runs that it cut short. One that logged each retry would say thousands.
const maxOutageLines = 100

func TestAServerThatIsAwayInTheMiddleOfAllWorksIsWaitedFor(t *testing.T) {
	t.Parallel() // it has a control plane of its own
	cluster := controlplanetest.Start(t, controlplanetest.Options{Nodes: nodes, Restartable: true})
	s := newSite(t, cluster)
	m := manage(t, cluster)
	s.done()

	s.middle()
	said := m.lines.count.Load()
	cluster.Kill(t)
	select {
	case <-time.After(outage):
	case <-m.ended:
		t.Fatalf("the manager ended with the server: %v", m.err)
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	s.done()
	t.Logf("all works were done %s after the server was back", time.Since(back).Round(10*time.Millisecond))

	select {
	case <-m.ended:
		t.Errorf("the manager ended: %v", m.err)
	default:
	}
	if lines := m.lines.count.Load() - said; lines > maxOutageLines {
		t.Errorf("the manager logged %d lines about one outage, at most %d are useful", lines, maxOutageLines)
	}
}
