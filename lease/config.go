// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// Timing says how long a lease is held without being renewed.
type Timing struct {
	// Duration is how long other processes wait after the holder's last renewal: the
	// longest time without a leader after a crash. Whole seconds; it stands in the
	// record.
	Duration time.Duration
	// RenewDeadline is how long the holder leads after it sent its last renewal that
	// succeeded. It is shorter than Duration.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two renewals, and between two attempts of anything
	// that fails.
	RetryPeriod time.Duration
}

// DefaultTiming lets another process lead within ten seconds of a crash. The timing of
// kube-controller-manager, 15 s, 10 s and 2 s, aims at twenty: there, a process that
// stands by polls every two seconds instead of watching. The server may be away for as
// long as RenewDeadline, less the time since the last renewal, before the holder gives up.
var DefaultTiming = Timing{Duration: 9 * time.Second, RenewDeadline: 6 * time.Second, RetryPeriod: 2 * time.Second}

// Validate returns an error for each field of a Timing that is wrong.
func (t Timing) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if t.Duration < time.Second || t.Duration%time.Second != 0 {
		wrong("lease duration %s: want whole seconds, at least 1s", t.Duration)
	}
	if t.RetryPeriod <= 0 {
		wrong("retry period %s: want more than 0", t.RetryPeriod)
	}
	if t.RenewDeadline >= t.Duration {
		wrong("renew deadline %s: want less than the lease duration, %s: the holder must stop before another may start", t.RenewDeadline, t.Duration)
	}
	// A renewal that fails must be followed by one that may succeed.
	if t.RenewDeadline < 2*t.RetryPeriod {
		wrong("renew deadline %s: want at least two retry periods of %s: one renewal that fails would end the term", t.RenewDeadline, t.RetryPeriod)
	}
	return errors.Join(errs...)
}

// Config is what an Elector is made of.
type Config struct {
	Key      object.Key // namespace and name of the Lease
	Identity string     // stands in the record, for people; best unique
	Timing   Timing
	Log      *slog.Logger // nil: slog.Default
}

// identityMost bounds Identity. Servers have no limit (k8s.io/kubernetes,
// pkg/apis/coordination/validation); a name that is longer is a mistake.
const identityMost = 253

func (c *Config) validate() error {
	var errs []error
	if c.Key.Namespace == "" || c.Key.Name == "" {
		errs = append(errs, fmt.Errorf("lease %q: want a namespace and a name", c.Key))
	}
	if c.Identity == "" || len(c.Identity) > identityMost || strings.ContainsAny(c.Identity, "\x00\n") {
		errs = append(errs, fmt.Errorf("identity %q: want one line of 1 to %d bytes", c.Identity, identityMost))
	}
	return errors.Join(append(errs, c.Timing.Validate())...)
}
