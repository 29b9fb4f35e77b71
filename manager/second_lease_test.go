// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/lease"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// moving is a manager with a part that another program may run too.
type moving struct {
	*manager.Manager
	server       *fakeapi.Server
	moved, stays atomic.Bool // the parts work
	stop         context.CancelFunc
	ended        chan error
}

var migration = object.Key{Namespace: "kube-system", Name: "migration"}

func startMoving(t *testing.T, server *fakeapi.Server) *moving {
	t.Helper()
	m := &moving{server: server, ended: make(chan error, 1)}
	var err error
	m.Manager, err = manager.New(&rest.Config{Host: "http://in-memory", Transport: server}, manager.Instance("a"),
		manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))), manager.LeaderElection(locked), manager.SecondLease(migration, "moved"))
	if err != nil {
		t.Fatal(err)
	}
	for name, works := range map[string]*atomic.Bool{"moved": &m.moved, "stays": &m.stays} {
		if err := m.Add(part{name, func(ctx context.Context) error {
			works.Store(ctx.Err() == nil)
			<-ctx.Done()
			works.Store(false)
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	m.stop = stop
	go func() { m.ended <- m.Run(ctx) }()
	return m
}

// after lets time pass, and compares which parts work.
func (m *moving) after(t *testing.T, d time.Duration, what string, moved, stays bool) {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
	if m.moved.Load() != moved || m.stays.Load() != stays {
		t.Errorf("%s: the part that moves works: %v, the other one: %v; want %v, %v", what, m.moved.Load(), m.stays.Load(), moved, stays)
	}
}

// holder returns the identity in a lease, which is empty if the lease is free.
func (m *moving) holder(t *testing.T, key object.Key) string {
	t.Helper()
	l, err := client.For[*coordinationv1.Lease](m.Client()).Get(context.WithoutCancel(t.Context()), key)
	if err != nil {
		t.Fatal(err)
	}
	return *l.Spec.HolderIdentity
}

// elsewhere is another program that holds the lease of the parts that move.
func elsewhere(t *testing.T, server *fakeapi.Server) *lease.Term {
	t.Helper()
	c, err := client.New(&rest.Config{Host: "http://in-memory", Transport: server})
	if err != nil {
		t.Fatal(err)
	}
	e, err := lease.New(c, lease.Config{Key: migration, Identity: "cloud", Timing: lease.DefaultTiming, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	term, err := e.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return term
}

func TestAPartOfASecondLeaseWorksOnlyWhileThatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer(t)
		other := elsewhere(t, server)
		m := startMoving(t, server)
		m.after(t, time.Minute, "while another program holds the lease", false, true)
		if err := other.Release(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		m.after(t, time.Minute, "once it is free", true, true)
		m.stop()
		if err := <-m.ended; err != nil {
			t.Error(err)
		}
		for _, key := range []object.Key{migration, locked.Key} {
			if holder := m.holder(t, key); holder != "" {
				t.Errorf("after the end the lease %s is held by %q", key, holder)
			}
		}
	})
}

func TestAManagerThatLosesItsSecondLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer(t)
		m := startMoving(t, server)
		m.after(t, time.Minute, "with both leases", true, true)
		if err := fakeapi.Change(server.Of(leases), migration, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("cloud") }); err != nil {
			t.Fatal(err)
		}
		err := <-m.ended
		if err == nil || !strings.Contains(err.Error(), "holding the lease kube-system/migration: ") || m.moved.Load() || m.stays.Load() {
			t.Errorf("it ended with %v; the parts work: %v, %v", err, m.moved.Load(), m.stays.Load())
		}
	})
}

func TestAManagerThatIsStoppedWaitsForNoSecondLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := podServer(t)
		other := elsewhere(t, server)
		m := startMoving(t, server)
		m.after(t, time.Minute, "while another program holds the lease", false, true)
		m.stop()
		if err := <-m.ended; err != nil {
			t.Error(err)
		}
		if holder := m.holder(t, migration); holder != "cloud" {
			t.Errorf("the lease of the other program is held by %q", holder)
		}
		_ = other.Release(t.Context(), "")
	})
}

func TestASecondLeaseNeedsAFirstOne(t *testing.T) {
	for name, options := range map[string][]manager.Option{
		"none":     {manager.SecondLease(migration, "a")},
		"the same": {manager.LeaderElection(locked), manager.SecondLease(locked.Key, "a")},
	} {
		if _, err := manager.New(&rest.Config{Host: "http://in-memory"}, append(options, manager.Log(slog.New(slog.DiscardHandler)))...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
