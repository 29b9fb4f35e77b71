// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/lease"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// electing is how managers of one cluster agree on which of them works. Flags and the name
// of the lease are those of kube-controller-manager: one of either kind stands by while
// one of the other works.
type electing struct {
	on     bool
	timing lease.Timing
	key    object.Key
}

// defaultLease is the one of kube-controller-manager.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/options.
var defaultLease = object.Key{Namespace: "kube-system", Name: "kube-controller-manager"}

func (e *electing) flags(flags *pflag.FlagSet) {
	flags.BoolVar(&e.on, "leader-elect", true, "work only while holding a lease, so that of several managers one works and the others stand by with warm caches")
	flags.DurationVar(&e.timing.Duration, "leader-elect-lease-duration", lease.DefaultTiming.Duration, "how long the others wait after the last sign of the leader, in whole seconds: the longest time without one after a crash")
	flags.DurationVar(&e.timing.RenewDeadline, "leader-elect-renew-deadline", lease.DefaultTiming.RenewDeadline, "how long the leader goes on after its last renewal that succeeded; less than the lease duration")
	flags.DurationVar(&e.timing.RetryPeriod, "leader-elect-retry-period", lease.DefaultTiming.RetryPeriod, "time between renewals, and between attempts that fail; at most half of the renew deadline")
	flags.StringVar(&e.key.Name, "leader-elect-resource-name", defaultLease.Name, "`name` of the Lease; the default is that of kube-controller-manager, so that one of both works")
	flags.StringVar(&e.key.Namespace, "leader-elect-resource-namespace", defaultLease.Namespace, "`namespace` of the Lease")
}

func (e *electing) options() ([]manager.Option, error) {
	if !e.on {
		return nil, nil
	}
	if err := e.timing.Validate(); err != nil {
		return nil, fmt.Errorf("--leader-elect-*: %s", oneLine(err))
	}
	if e.key.Name == "" || e.key.Namespace == "" {
		return nil, fmt.Errorf("--leader-elect-resource-name and -namespace: want a name and a namespace, or --leader-elect=false")
	}
	return []manager.Option{manager.LeaderElection(lease.Config{Key: e.key, Timing: e.timing})}, nil
}
