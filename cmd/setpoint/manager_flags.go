// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/endpoints"
	"github.com/setpoint-io/setpoint/controllers/endpointslice"
	"github.com/setpoint-io/setpoint/controllers/endpointslicemirroring"
	"github.com/setpoint-io/setpoint/controllers/garbagecollector"
	"github.com/setpoint-io/setpoint/controllers/namespace"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
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
	perSlice         int
	perMirrored      int
	legacyTokens     time.Duration
	nodes            nodelifecycle.Options
	terminatedPods   int
	featureGates     featureGates
	emulatedVersions []string
	gates            map[string]bool // which are on; check fills it
}

// concurrency is a flag that says how much a controller does at a time.
type concurrency struct {
	flag, controller, what string
	workers, most          int // most is 0 where there is no bound
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
		flags.IntVar(&c.workers, c.flag, c.workers, fmt.Sprintf("how many %s %s works on at a time", c.what, c.controller))
	}
	flags.BoolVar(&t.collectGarbage, "enable-garbage-collector", true, "run garbage-collector-controller, if it is among --controllers")
	flags.IntVar(&t.perSlice, "max-endpoints-per-slice", 100, "how many endpoints an EndpointSlice holds at most, 1 to 1000")
	flags.IntVar(&t.perMirrored, "mirroring-max-endpoints-per-subset", 1000, "how many addresses of a subset of Endpoints are mirrored at most, 1 to 1000")
	flags.DurationVar(&t.legacyTokens, "legacy-service-account-token-clean-up-period", 365*24*time.Hour, "how long a service-account token of old is unused before it is made invalid, and again before it is deleted")
	flags.DurationVar(&t.nodes.NodeMonitorPeriod, "node-monitor-period", 5*time.Second, "within what time it is noticed that a Node has fallen silent or is back")
	flags.DurationVar(&t.nodes.NodeMonitorGracePeriod, "node-monitor-grace-period", 50*time.Second, "how long a Node may be silent before its state counts as unknown")
	flags.DurationVar(&t.nodes.NodeStartupGracePeriod, "node-startup-grace-period", 60*time.Second, "the same for a Node that has never posted a status")
	flags.Float64Var(&t.nodes.NodeEvictionRate, "node-eviction-rate", 0.1, "how many unreachable Nodes of a zone are given the taint that evicts, in a second")
	flags.Float64Var(&t.nodes.SecondaryNodeEvictionRate, "secondary-node-eviction-rate", 0.01, "the same for a large zone that is partly down")
	flags.IntVar(&t.nodes.LargeClusterSizeThreshold, "large-cluster-size-threshold", 50, "a zone with more Nodes is large; in a smaller one that is partly down nothing is evicted")
	flags.Float64Var(&t.nodes.UnhealthyZoneThreshold, "unhealthy-zone-threshold", 0.55, "the share of Nodes, of three at least, that are not ready in a zone that is partly down")
	flags.IntVar(&t.terminatedPods, "terminated-pod-gc-threshold", 12500, "how many Pods that have ended may stay; with 0 or less all may")
	flags.Var(&t.featureGates, "feature-gates", "Kubernetes feature `gates` of the controllers, such as A=true,B=false")
	flags.StringSliceVar(&t.emulatedVersions, "emulated-version", nil, "behave as this `version` of Kubernetes would, such as 1.35")
	fixedFlags(flags)
}

// check says what is wrong with the flags.
func (t *tuning) check() error {
	for _, c := range t.workers {
		if err := within(c.flag, c.workers, c.most); err != nil {
			return err
		}
	}
	if err := within("max-endpoints-per-slice", t.perSlice, 1000); err != nil {
		return err
	}
	if err := within("mirroring-max-endpoints-per-subset", t.perMirrored, 1000); err != nil {
		return err
	}
	if err := longer("legacy-service-account-token-clean-up-period", t.legacyTokens); err != nil {
		return err
	}
	if err := t.checkNodes(); err != nil {
		return err
	}
	var err error
	t.gates, err = t.featureGates.resolve(t.emulatedVersions)
	return err
}

// into adds what the flags say to the controllers' options. It follows check.
func (t *tuning) into(o *registry.Options) {
	o.Workers = map[string]int{}
	for _, c := range t.workers {
		o.Workers[c.controller] = c.workers
	}
	o.MaxEndpointsPerSlice, o.MaxMirroredPerSubset = t.perSlice, t.perMirrored
	o.LegacyTokenCleanUp = t.legacyTokens
	o.NodeLifecycle = t.nodeOptions()
	o.TerminatedPods = noneIfZero(max(t.terminatedPods, 0))
	o.IgnorePodDeletionCost = !t.gates[deletionCost]
	o.OmitTerminatingReplicas = !t.gates[terminatingReplicas]
	o.OnlyPreferClose = !t.gates[preferSame]
}

func (t *tuning) checkNodes() error {
	n := t.nodes
	for flag, period := range map[string]time.Duration{
		"node-monitor-period": n.NodeMonitorPeriod, "node-monitor-grace-period": n.NodeMonitorGracePeriod,
		"node-startup-grace-period": n.NodeStartupGracePeriod,
	} {
		if err := longer(flag, period); err != nil {
			return err
		}
	}
	for flag, rate := range map[string]float64{
		"node-eviction-rate": n.NodeEvictionRate, "secondary-node-eviction-rate": n.SecondaryNodeEvictionRate,
	} {
		if !(rate >= 0 && rate <= math.MaxFloat32) { // so that NaN is none either
			return fmt.Errorf("--%s=%g: want Nodes in a second, 0 or more", flag, rate)
		}
	}
	switch {
	case n.NodeMonitorPeriod >= n.NodeMonitorGracePeriod:
		return fmt.Errorf("--node-monitor-period=%s: want less than --node-monitor-grace-period, which is %s", n.NodeMonitorPeriod, n.NodeMonitorGracePeriod)
	case n.LargeClusterSizeThreshold < 0:
		return fmt.Errorf("--large-cluster-size-threshold=%d: want 0 or more", n.LargeClusterSizeThreshold)
	case !(n.UnhealthyZoneThreshold >= 0 && n.UnhealthyZoneThreshold <= 1):
		return fmt.Errorf("--unhealthy-zone-threshold=%g: want a share, 0 to 1", n.UnhealthyZoneThreshold)
	}
	return nil
}

// nodeOptions says what the flags say to a controller that takes 0 for its default.
func (t *tuning) nodeOptions() nodelifecycle.Options {
	n := t.nodes
	n.NodeEvictionRate = noneIfZero(n.NodeEvictionRate)
	n.SecondaryNodeEvictionRate = noneIfZero(n.SecondaryNodeEvictionRate)
	// In a zone that is partly down three Nodes are not ready, so it has more than one.
	n.LargeClusterSizeThreshold = max(n.LargeClusterSizeThreshold, 1)
	n.UnhealthyZoneThreshold = max(n.UnhealthyZoneThreshold, math.SmallestNonzeroFloat64)
	n.TrustCachedLeases = !t.gates[leaseBreaker]
	return n
}

// of returns those of the chosen controllers that run: what is switched off by a flag of
// its own does not.
func (t *tuning) of(entries []registry.Entry) []registry.Entry {
	var run []registry.Entry
	for _, e := range registry.Known() {
		chosen := slices.ContainsFunc(entries, func(c registry.Entry) bool { return c.Name == e.Name })
		if chosen && (e.Name != garbagecollector.Name || t.collectGarbage) {
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

// within holds that a number is 1 to most. Upstream takes less than one worker, and then
// does nothing and says nothing.
func within(flag string, n, most int) error {
	switch {
	case n >= 1 && (most == 0 || n <= most):
		return nil
	case most == 0:
		return fmt.Errorf("--%s=%d: want 1 or more", flag, n)
	}
	return fmt.Errorf("--%s=%d: want 1 to %d", flag, n, most)
}

func longer(flag string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("--%s=%s: want more than 0", flag, d)
	}
	return nil
}
