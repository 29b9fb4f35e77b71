// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/internal/cli"
)

// fixed is a flag of kube-controller-manager that is taken with one value only, because
// there is one way here. A command line that gives it that value goes on working; one that
// asks for something else is told why.
type fixed struct {
	value string
	as    string // its type, as pflag calls it
	why   string
}

func (f *fixed) String() string { return f.value }
func (f *fixed) Type() string   { return f.as }

// ExplainsItself says that its errors do.
func (f *fixed) ExplainsItself() {}

func (f *fixed) Set(text string) error {
	if f.as == "duration" {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("want %s", cli.Wants(f.as))
		}
		text = d.String()
	}
	if text != f.value {
		return errors.New(f.why)
	}
	return nil
}

// fixedFlags adds them.
func fixedFlags(flags *pflag.FlagSet) {
	const answers = "what the API server says about who asks for metrics counts for 10s; want 10s, or leave it out"
	const noBatches = "changes of Pods are not held back here; want 0s, or leave it out"
	for _, f := range []struct {
		name string
		fixed
	}{
		{"authentication-token-webhook-cache-ttl", fixed{"10s", "duration", answers}},
		{"authorization-webhook-cache-authorized-ttl", fixed{"10s", "duration", answers}},
		{"authorization-webhook-cache-unauthorized-ttl", fixed{"10s", "duration", answers}},
		{"endpoint-updates-batch-period", fixed{"0s", "duration", noBatches}},
		{"endpointslice-updates-batch-period", fixed{"0s", "duration", noBatches}},
		{"kube-api-content-type", fixed{
			"application/vnd.kubernetes.protobuf", "string",
			"built-in kinds travel as protobuf and the others as JSON; want application/vnd.kubernetes.protobuf, or leave it out",
		}},
		{"leader-elect-resource-lock", fixed{"leases", "string", "there are no locks but Leases; want leases, or leave it out"}},
		{"min-resync-period", fixed{"12h0m0s", "duration", "no controller here needs to be told again of what has not changed; want 12h, or leave it out"}},
		{"mirroring-endpointslice-updates-batch-period", fixed{"0s", "duration", "changes of Endpoints are not held back here; want 0s, or leave it out"}},
		{"namespace-sync-period", fixed{"5m0s", "duration", "namespace-controller comes back by itself to what it could not finish; want 5m, or leave it out"}},
	} {
		value := f.fixed
		flags.Var(&value, f.name, fmt.Sprintf("as of kube-controller-manager; no other value than %s works", value.value))
	}
	flags.String("cluster-name", "kubernetes", "as of kube-controller-manager, where it is in the names of what cloud providers make; no controller here makes any")
}
