// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/setpoint-io/setpoint/internal/nearest"
)

// The minor versions of Kubernetes that can be emulated: this one's, and those before it
// that upstream emulates too.
// Source: k8s.io/component-base/compatibility.
const (
	newestMinor = 36
	oldestMinor = newestMinor - 3
)

// gate is a feature gate that upstream's counterparts of our controllers read, or the
// process around them.
type gate struct {
	name  string
	does  bool // what is done here, always
	since int  // the minor version since which that is upstream's default; 0 is before oldestMinor

	// unseen: whether upstream's default is the same cannot be told from outside, so that
	// emulating a version asks nothing of it.
	unseen bool
}

// gates returns all of them.
// Source: the uses of utilfeature.DefaultFeatureGate in k8s.io/kubernetes/pkg/controller and
// cmd/kube-controller-manager/app, and pkg/features/kube_features.go for the versions.
func gates() []gate {
	return []gate{
		{name: "AllAlpha", does: false},
		{name: "AllBeta", does: false},
		// The lease is let go of at the end, so that nobody waits for a process that is gone.
		{name: "ControllerManagerReleaseLeaderElectionLockOnExit", does: true, unseen: true},
		{name: "CoordinatedLeaderElection", does: false},
		{name: "DeploymentReplicaSetTerminatingReplicas", does: true, since: 35},
		{name: "LogarithmicScaleDown", does: true},
		{name: "OrderedNamespaceDeletion", does: true, since: 33},
		{name: "PodDeletionCost", does: true},
		{name: "PreferSameTrafficDistribution", does: true, since: 34},
		{name: "SeparateTaintEvictionController", does: true},
		// Every controller here sees its own writes.
		{name: "StaleControllerConsistencyReplicaSet", does: true, since: 36, unseen: true},
	}
}

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
		if err := (gate{name: name}).settable(on); err != nil {
			return err
		}
		(*g)[name] = on
	}
	return nil
}

// settable looks the gate up and holds that a value is the one that works.
func (g gate) settable(on bool) error {
	var names []string
	for _, known := range gates() {
		if known.name == g.name {
			if on != known.does {
				return fmt.Errorf("setpoint has only %s=%t; leave it out", g.name, known.does)
			}
			return nil
		}
		names = append(names, known.name)
	}
	return fmt.Errorf("no controller here has a feature gate %q; did you mean %s? There are: %s",
		g.name, nearest.Name(g.name, names), strings.Join(names, ", "))
}

// check holds that the emulated version asks for nothing that is not done here.
func (g featureGates) check(emulated []string) error {
	minor, err := emulatedMinor(emulated)
	if err != nil {
		return err
	}
	for _, known := range gates() {
		if _, set := g[known.name]; set || known.unseen || known.since <= minor {
			continue
		}
		return fmt.Errorf("--emulated-version=1.%d: %s was %t then, and setpoint has only %t; give 1.%d or newer, or --feature-gates=%s=%t",
			minor, known.name, !known.does, known.does, known.since, known.name, known.does)
	}
	return nil
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
