// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/controllers/csrsigning"
	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/endpoints"
	"github.com/setpoint-io/setpoint/controllers/endpointslice"
	"github.com/setpoint-io/setpoint/controllers/endpointslicemirroring"
	"github.com/setpoint-io/setpoint/controllers/garbagecollector"
	"github.com/setpoint-io/setpoint/controllers/legacytokencleaner"
	"github.com/setpoint-io/setpoint/controllers/namespace"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/replicationcontroller"
	"github.com/setpoint-io/setpoint/controllers/serviceaccounttoken"
	"github.com/setpoint-io/setpoint/controllers/ttlafterfinished"
)

// tuning is what single controllers are told. Names, meanings and defaults of the flags
// are those of kube-controller-manager.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/options, and
// pkg/controller/*/config/v1alpha1 for the defaults.
type tuning struct {
	workers          []concurrency
	collectGarbage   bool
	perSlice         int32
	perMirrored      int32
	batches          batchPeriods
	legacyTokens     time.Duration
	nodes            nodeFlags
	terminatedPods   int32
	namespacePeriod  time.Duration
	featureGates     featureGates
	emulatedVersions []string
	compatibleWith   []string
	gates            map[string]bool // which are on; check fills it
	signing          string          // the flag that stops it, if one does
}

// concurrency is a flag that says how much a controller does at a time.
type concurrency struct {
	flag, controller, what string
	workers, most          int32 // most is 0 where there is no bound, neither above nor below
}

// concurrencies are upstream's flags with upstream's defaults. Its other controllers have
// none.
func concurrencies() []concurrency {
	return []concurrency{
		{"concurrent-deployment-syncs", deployment.Name, "Deployments", 5, 0},
		{"concurrent-endpoint-syncs", endpoints.Name, "Services", 5, 0},
		{"concurrent-gc-syncs", garbagecollector.Name, "objects", 20, 0},
		{"concurrent-namespace-syncs", namespace.Name, "Namespaces", 10, 0},
		{"concurrent-rc-syncs", replicationcontroller.Name, "ReplicationControllers", 5, 0},
		{"concurrent-replicaset-syncs", replicaset.Name, "ReplicaSets", 5, 0},
		{"concurrent-service-endpoint-syncs", endpointslice.Name, "Services", 5, 50},
		{"concurrent-serviceaccount-token-syncs", serviceaccounttoken.Name, "Secrets", 5, 0},
		{"concurrent-ttl-after-finished-syncs", ttlafterfinished.Name, "Jobs", 5, 0},
		{"mirroring-concurrent-service-endpoint-syncs", endpointslicemirroring.Name, "Endpoints", 5, 50},
	}
}

func (t *tuning) flags(flags *pflag.FlagSet) {
	t.workers = concurrencies()
	for i := range t.workers {
		c := &t.workers[i]
		flags.Int32Var(&c.workers, c.flag, c.workers, fmt.Sprintf("how many %s %s works on at a time", c.what, c.controller))
	}
	flags.BoolVar(&t.collectGarbage, "enable-garbage-collector", true, "run garbage-collector-controller, if it is among --controllers")
	flags.Int32Var(&t.perSlice, "max-endpoints-per-slice", 100, "how many endpoints an EndpointSlice holds at most, 1 to 1000")
	flags.Int32Var(&t.perMirrored, "mirroring-max-endpoints-per-subset", 1000, "how many addresses of a subset of Endpoints are mirrored at most, 1 to 1000")
	flags.DurationVar(&t.legacyTokens, "legacy-service-account-token-clean-up-period", 365*24*time.Hour, "how long a service-account token of old is unused before it is made invalid, and again before it is deleted")
	flags.Int32Var(&t.terminatedPods, "terminated-pod-gc-threshold", 12500, "how many Pods that have ended may stay; with 0 or less all may")
	flags.DurationVar(&t.namespacePeriod, "namespace-sync-period", 5*time.Minute, "how often a Namespace that is being deleted is looked at again, beside the times that its controller finds; 0 is never")
	flags.Var(&t.featureGates, "feature-gates", "Kubernetes feature `gates`, such as A=true,B=false")
	flags.StringSliceVar(&t.emulatedVersions, "emulated-version", nil, "behave as this `version` of Kubernetes would, such as 1.35")
	flags.StringSliceVar(&t.compatibleWith, "min-compatibility-version", nil, "the oldest `version` of the other components of the control plane; no controller here depends on it")
	t.nodes.flags(flags)
	t.batches.flags(flags)
}

// check says what is wrong with the flags.
func (t *tuning) check() error {
	for _, c := range t.workers {
		if c.most > 0 {
			if err := within(c.flag, c.workers, c.most); err != nil {
				return err
			}
		}
	}
	if err := within("max-endpoints-per-slice", t.perSlice, 1000); err != nil {
		return err
	}
	if err := within("mirroring-max-endpoints-per-subset", t.perMirrored, 1000); err != nil {
		return err
	}
	if err := compatible(t.compatibleWith, t.emulatedVersions); err != nil {
		return err
	}
	var err error
	t.gates, err = t.featureGates.resolve(t.emulatedVersions)
	return err
}

// stopped returns the controllers that do nothing with these flags, each with the flag that
// has it so.
func (t *tuning) stopped() map[string]string {
	all := map[string]string{}
	for _, c := range t.workers {
		if c.workers < 1 {
			all[c.controller] = fmt.Sprintf("--%s=%d", c.flag, c.workers)
		}
	}
	if t.legacyTokens <= 0 {
		all[legacytokencleaner.Name] = fmt.Sprintf("--legacy-service-account-token-clean-up-period=%s", t.legacyTokens)
	}
	if t.signing != "" {
		all[csrsigning.Name] = t.signing
	}
	return all
}

// into adds what the flags say to the controllers' options. It follows check.
func (t *tuning) into(o *registry.Options) {
	o.Workers = map[string]int{}
	for _, c := range t.workers {
		o.Workers[c.controller] = int(max(c.workers, 1)) // with less it does not run
	}
	o.MaxEndpointsPerSlice, o.MaxMirroredPerSubset = int(t.perSlice), int(t.perMirrored)
	t.batches.into(o)
	o.NamespaceSyncPeriod = t.namespacePeriod
	o.LegacyTokenCleanUp = max(t.legacyTokens, 0)
	o.NodeLifecycle = t.nodes.options()
	o.NodeLifecycle.TrustCachedLeases = !t.gates[leaseBreaker]
	o.TerminatedPods = noneIfZero(int(max(t.terminatedPods, 0)))
	o.IgnorePodDeletionCost = !t.gates[deletionCost]
	o.OmitTerminatingReplicas = !t.gates[terminatingReplicas]
	o.OnlyPreferClose = !t.gates[preferSame]
}

// of returns those of the chosen controllers that run: what is switched off by a flag of
// its own does not.
func (t *tuning) of(entries []registry.Entry) []registry.Entry {
	var run []registry.Entry
	stopped := t.stopped()
	for _, e := range entries {
		if stopped[e.Name] == "" && (e.Name != garbagecollector.Name || t.collectGarbage) {
			run = append(run, e)
		}
	}
	return run
}

// noneIfZero is for options whose zero is a default, and whose none is below it.
func noneIfZero[T int | float64](n T) T {
	if n == 0 {
		return -1
	}
	return n
}

// within holds that a number is 1 to most.
func within(flag string, n, most int32) error {
	if n < 1 || n > most {
		return fmt.Errorf("--%s=%d: want 1 to %d", flag, n, most)
	}
	return nil
}
