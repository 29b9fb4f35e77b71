// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/lease"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// Electing is how processes of one sort agree on which of them works. The flags are those of
// kube-controller-manager.
type Electing struct {
	on       bool
	timing   lease.Timing
	key      object.Key
	lock     string
	flagSet  *pflag.FlagSet
	defaults LeaseDefaults
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
	e.flagSet, e.defaults = flags, d
	flags.StringVar(&e.lock, "leader-elect-resource-lock", "leases", "kind of object that is held; there are no others any more")
	flags.BoolVar(&e.on, "leader-elect", d.On, "work only while holding a lease, so that of several "+d.Processes+" one works and the others stand by with warm caches")
	flags.DurationVar(&e.timing.Duration, "leader-elect-lease-duration", lease.DefaultTiming.Duration, "how long the others wait after the last sign of the leader, rounded up to whole seconds: the longest time without one after a crash")
	flags.DurationVar(&e.timing.RenewDeadline, "leader-elect-renew-deadline", lease.DefaultTiming.RenewDeadline, "how long the leader works after its last renewal that succeeded; less than the lease duration")
	flags.DurationVar(&e.timing.RetryPeriod, "leader-elect-retry-period", lease.DefaultTiming.RetryPeriod, "time between renewals, and between attempts that fail; half of the renew deadline if it is more")
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
	if e.lock != "leases" {
		return nil, fmt.Errorf("--leader-elect-resource-lock=%s: want leases, or leave it out", e.lock)
	}
	timing, err := e.whole()
	if err != nil {
		return nil, err
	}
	key := e.Lease()
	if key.Name == "" || key.Namespace == "" {
		return nil, fmt.Errorf("--leader-elect-resource-name and -namespace: want a name and a namespace, or --leader-elect=false")
	}
	return []manager.Option{manager.LeaderElection(lease.Config{Key: key, Timing: timing})}, nil
}

// Lease returns the Lease that the processes hold, or would hold.
func (e *Electing) Lease() object.Key {
	return object.Key{Namespace: cmp.Or(e.key.Namespace, e.defaults.Key.Namespace), Name: cmp.Or(e.key.Name, e.defaults.Key.Name)}
}

type timingFlag struct {
	name      string
	byDefault time.Duration
	of        func(*lease.Timing) *time.Duration
}

// timingFlags returns those of lease.Timing, with the defaults of kube-controller-manager. These
// hold where only some are given: they fit whatever was chosen to go with them.
// Source: k8s.io/component-base/config/v1alpha1, RecommendedDefaultLeaderElectionConfiguration.
func timingFlags() []timingFlag {
	return []timingFlag{
		{"leader-elect-lease-duration", 15 * time.Second, func(t *lease.Timing) *time.Duration { return &t.Duration }},
		{"leader-elect-renew-deadline", 10 * time.Second, func(t *lease.Timing) *time.Duration { return &t.RenewDeadline }},
		{"leader-elect-retry-period", 2 * time.Second, func(t *lease.Timing) *time.Duration { return &t.RetryPeriod }},
	}
}

// jitter is by how much a pause of others may be longer than the retry period.
// Source: k8s.io/client-go/tools/leaderelection, JitterFactor.
const jitter = 1.2

// whole is the timing of the flags. What kube-controller-manager accepts is accepted, and made
// safe: others never wait for less than the lease duration, and renewals come so often that one
// which fails does not end the term.
func (e *Electing) whole() (lease.Timing, error) {
	t := e.timing
	if slices.ContainsFunc(timingFlags(), func(f timingFlag) bool { return e.flagSet.Changed(f.name) }) {
		for _, f := range timingFlags() {
			if !e.flagSet.Changed(f.name) {
				*f.of(&t) = f.byDefault
			}
		}
	}
	for _, f := range timingFlags() {
		if d := *f.of(&t); d <= 0 {
			return t, fmt.Errorf("--%s=%s: want more than 0", f.name, d)
		}
	}
	switch {
	case t.RenewDeadline >= t.Duration:
		return t, fmt.Errorf("--leader-elect-renew-deadline=%s: want less than --leader-elect-lease-duration, which is %s: the holder must stop before another may start", t.RenewDeadline, t.Duration)
	case float64(t.RenewDeadline) <= jitter*float64(t.RetryPeriod):
		return t, fmt.Errorf("--leader-elect-retry-period=%s: want less than --leader-elect-renew-deadline, which is %s, by a fifth at least", t.RetryPeriod, t.RenewDeadline)
	}
	t.Duration = (t.Duration + time.Second - 1).Truncate(time.Second)
	t.RetryPeriod = max(min(t.RetryPeriod, t.RenewDeadline/2), 1)
	if err := t.Validate(); err != nil {
		return t, fmt.Errorf("--leader-elect-*: %s", OneLine(err))
	}
	return t, nil
}
