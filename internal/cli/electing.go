// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/lease"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// Electing is how processes of one sort agree on which of them works. The flags are those of
// kube-controller-manager.
type Electing struct {
	on     bool
	timing lease.Timing
	key    object.Key
}

// LeaseDefaults are those of one command.
type LeaseDefaults struct {
	On        bool
	Key       object.Key
	Processes string // what the processes are called, such as "managers"
	About     string // what its help says about the name; it may be empty
}

// Flags adds its flags.
func (e *Electing) Flags(flags *pflag.FlagSet, d LeaseDefaults) {
	flags.BoolVar(&e.on, "leader-elect", d.On, "work only while holding a lease, so that of several "+d.Processes+" one works and the others stand by with warm caches")
	flags.DurationVar(&e.timing.Duration, "leader-elect-lease-duration", lease.DefaultTiming.Duration, "how long the others wait after the last sign of the leader, in whole seconds: the longest time without one after a crash")
	flags.DurationVar(&e.timing.RenewDeadline, "leader-elect-renew-deadline", lease.DefaultTiming.RenewDeadline, "how long the leader goes on after its last renewal that succeeded; less than the lease duration")
	flags.DurationVar(&e.timing.RetryPeriod, "leader-elect-retry-period", lease.DefaultTiming.RetryPeriod, "time between renewals, and between attempts that fail; at most half of the renew deadline")
	flags.StringVar(&e.key.Name, "leader-elect-resource-name", d.Key.Name, "`name` of the Lease"+d.About)
	flags.StringVar(&e.key.Namespace, "leader-elect-resource-namespace", d.Key.Namespace, "`namespace` of the Lease")
}

// On switches it on.
func (e *Electing) On() { e.on = true }

// By names the Lease instead of the flags.
func (e *Electing) By(key object.Key) { e.key = key }

// Options are those of the manager.
func (e *Electing) Options() ([]manager.Option, error) {
	if !e.on {
		return nil, nil
	}
	if err := e.timing.Validate(); err != nil {
		return nil, fmt.Errorf("--leader-elect-*: %s", OneLine(err))
	}
	if e.key.Name == "" || e.key.Namespace == "" {
		return nil, fmt.Errorf("--leader-elect-resource-name and -namespace: want a name and a namespace, or --leader-elect=false")
	}
	return []manager.Option{manager.LeaderElection(lease.Config{Key: e.key, Timing: e.timing})}, nil
}
