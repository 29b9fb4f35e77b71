// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/setpoint-io/setpoint/internal/nearest"
)

// The minor versions of Kubernetes that can be emulated: this one's, and those before it
// that upstream emulates too.
// Source: k8s.io/component-base/compatibility.
const (
	newestMinor = 37
	oldestMinor = newestMinor - 3
)

// gate is a feature gate that upstream's counterparts of our controllers read, or the
// process around them.
type gate struct {
	name  string
	specs []gateSpec // by version, the oldest first

	// only says why there is but one way here: the value of specs. Empty: it switches.
	only string
	// apart is the value that holds here by default, where it is on purpose not upstream's.
	apart *bool
}

// gateSpec is what a gate is since a version.
type gateSpec struct {
	since  int // the minor version; 0 is before oldestMinor
	on     bool
	stage  gateStage
	locked bool // to on
}

type gateStage int

const (
	alpha gateStage = iota
	beta
	stable
)

// The gates that are asked for below.
const (
	releaseOnExit       = "ControllerManagerReleaseLeaderElectionLockOnExit"
	terminatingReplicas = "DeploymentReplicaSetTerminatingReplicas"
	deletionCost        = "PodDeletionCost"
	leaseBreaker        = "NodeControllerLeaseCircuitBreaker"
	preferSame          = "PreferSameTrafficDistribution"
)

// gates returns all of them.
// Source: the uses of utilfeature.DefaultFeatureGate in k8s.io/kubernetes/pkg/controller and
// cmd/kube-controller-manager/app, and pkg/features/kube_features.go for the versions.
func gates() []gate {
	return []gate{
		// The lease is let go of at the end, so that nobody waits for a process that is gone.
		{name: releaseOnExit, specs: []gateSpec{{since: 36, stage: alpha}}, apart: new(true)},
		{name: "CoordinatedLeaderElection", specs: []gateSpec{{stage: beta}}, only: "there is one way to elect a leader here"},
		{name: terminatingReplicas, specs: []gateSpec{{stage: alpha}, {since: 35, on: true, stage: beta}}},
		{name: "LogarithmicScaleDown", specs: []gateSpec{{on: true, stage: stable, locked: true}}},
		{name: leaseBreaker, specs: []gateSpec{{since: 37, on: true, stage: beta}}},
		{name: "OrderedNamespaceDeletion", specs: []gateSpec{{on: true, stage: stable, locked: true}}},
		{name: deletionCost, specs: []gateSpec{{on: true, stage: beta}}},
		{name: preferSame, specs: []gateSpec{{on: true, stage: beta}, {since: 35, on: true, stage: stable, locked: true}}},
		{name: "SeparateTaintEvictionController", specs: []gateSpec{{on: true, stage: stable, locked: true}}},
		// Whether a ReplicaSet waits for its own writes to be seen, or counts what it expects
		// to see. From outside both are the same, and so is what is done here in either case.
		{name: "StaleControllerConsistencyReplicaSet", specs: []gateSpec{{since: 36, on: true, stage: beta}}},
	}
}

// at returns what the gate is in a version, false if there was none yet.
func (g gate) at(minor int) (gateSpec, bool) {
	var now gateSpec
	there := false
	for _, s := range g.specs {
		if s.since <= minor {
			now, there = s, true
		}
	}
	return now, there
}

// groups are gates that stand for all of a stage that are not set themselves.
// Source: k8s.io/component-base/featuregate.
var groups = map[string]gateStage{"AllAlpha": alpha, "AllBeta": beta}

// featureGates are gates that were set.
type featureGates map[string]bool

// Type implements pflag.Value.
func (*featureGates) Type() string { return "gates" }

// String implements pflag.Value.
func (g *featureGates) String() string {
	var pairs []string
	for name, on := range *g {
		pairs = append(pairs, fmt.Sprintf("%s=%t", name, on))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// Set implements pflag.Value. It may be called more than once. Each gate may have "kube:"
// before it, as upstream's may.
func (g *featureGates) Set(text string) error {
	if *g == nil {
		*g = featureGates{}
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		name = strings.TrimPrefix(strings.TrimSpace(name), "kube:")
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		if name == "" || err != nil {
			return fmt.Errorf("%q: want NAME=true or NAME=false", pair)
		}
		if err := known(name); err != nil {
			return err
		}
		(*g)[name] = on
	}
	return nil
}

// known holds that there is a gate of a name.
func known(name string) error {
	names := slices.Sorted(maps.Keys(groups))
	for _, g := range gates() {
		names = append(names, g.name)
	}
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("no controller here has a feature gate %q; did you mean %s? There are: %s",
		name, nearest.Name(name, names), strings.Join(names, ", "))
}

// resolve returns which gates are on in the version that is emulated. Those that are not
// there yet are off. The error is that of the first that cannot be as it was asked for.
func (g featureGates) resolve(emulated []string) (map[string]bool, error) {
	minor, err := emulatedMinor(emulated)
	if err != nil {
		return nil, err
	}
	on := map[string]bool{}
	for _, each := range gates() {
		spec, there := each.at(minor)
		if on[each.name] = spec.on; each.apart != nil {
			on[each.name] = *each.apart
		}
		by, asked, set := g.asked(each.name, spec.stage)
		switch {
		case !set, by != each.name && !there:
		case !there:
			return nil, fmt.Errorf("--feature-gates=%s=%t: there is none in 1.%d, which --emulated-version names; leave it out", by, asked, minor)
		case by != each.name && spec.locked:
		case spec.locked && asked != spec.on:
			return nil, fmt.Errorf("--feature-gates=%s=%t: it is locked to %t in 1.%d; leave it out", by, asked, spec.on, minor)
		case each.only != "" && asked != spec.on:
			return nil, fmt.Errorf("--feature-gates=%s=%t: setpoint has only %s=%t, because %s; leave it out", by, asked, each.name, spec.on, each.only)
		default:
			on[each.name] = asked
		}
	}
	return on, nil
}

// asked returns what a gate was set to, and by which name: its own, or that of its stage.
func (g featureGates) asked(name string, stage gateStage) (by string, on, set bool) {
	if on, set = g[name]; set {
		return name, on, true
	}
	for group, of := range groups {
		if on, set = g[group]; set && of == stage {
			return group, on, true
		}
	}
	return "", false, false
}

// emulatedMinor reads versions as upstream does: "1.35", or "kube=1.35".
func emulatedMinor(emulated []string) (int, error) {
	switch len(emulated) {
	case 0:
		return newestMinor, nil
	case 1:
	default:
		return 0, fmt.Errorf("--emulated-version=%s: want one version", strings.Join(emulated, ","))
	}
	text := strings.TrimPrefix(strings.TrimPrefix(emulated[0], "kube="), "v")
	major, rest, _ := strings.Cut(text, ".")
	minor, err := strconv.Atoi(rest)
	if major != "1" || err != nil || minor < oldestMinor || minor > newestMinor {
		return 0, fmt.Errorf("--emulated-version=%s: want 1.%d to 1.%d", emulated[0], oldestMinor, newestMinor)
	}
	return minor, nil
}
