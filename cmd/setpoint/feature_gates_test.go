// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/controllers/registry"
)

func TestGatesAreOnAsUpstreamHasThemInTheVersionThatIsEmulated(t *testing.T) {
	for _, test := range []struct {
		name, args string
		off        string // those that are not on
	}{
		{"by default", "", "CoordinatedLeaderElection"},
		{"one that is switched off", "--feature-gates=PodDeletionCost=false", "CoordinatedLeaderElection PodDeletionCost"},
		{"the lease is kept", "--feature-gates=" + releaseOnExit + "=false", releaseOnExit + " CoordinatedLeaderElection"},
		{"all of a stage", "--feature-gates=AllBeta=false", "CoordinatedLeaderElection " + terminatingReplicas + " " + leaseBreaker + " PodDeletionCost StaleControllerConsistencyReplicaSet"},
		{"all of a stage but one", "--feature-gates=AllBeta=false,PodDeletionCost=true", "CoordinatedLeaderElection " + terminatingReplicas + " " + leaseBreaker + " StaleControllerConsistencyReplicaSet"},
		{"1.36", "--emulated-version=1.36", "CoordinatedLeaderElection " + leaseBreaker},
		{"1.35", "--emulated-version=1.35", "CoordinatedLeaderElection " + leaseBreaker + " StaleControllerConsistencyReplicaSet"},
		{"1.34", "--emulated-version=1.34", "CoordinatedLeaderElection " + terminatingReplicas + " " + leaseBreaker + " StaleControllerConsistencyReplicaSet"},
		{
			"1.34 with alpha ones", "--emulated-version=1.34 --feature-gates=AllAlpha=true,PreferSameTrafficDistribution=false",
			"CoordinatedLeaderElection " + leaseBreaker + " PreferSameTrafficDistribution StaleControllerConsistencyReplicaSet",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tune, err := tuned(t, strings.Fields(test.args)...)
			if err != nil {
				t.Fatal(err)
			}
			var off []string
			for _, g := range gates() {
				if !tune.gates[g.name] {
					off = append(off, g.name)
				}
			}
			if got := strings.Join(off, " "); got != test.off {
				t.Errorf("off are %s, want %s", got, test.off)
			}
		})
	}
}

func TestAGateThatIsLockedOrNotThereYetIsRefusedWithItsVersion(t *testing.T) {
	for args, want := range map[string]string{
		"--feature-gates=OrderedNamespaceDeletion=false":                                                "locked to true in 1.37",
		"--emulated-version=1.34 --feature-gates=SeparateTaintEvictionController=false":                 "locked to true in 1.34",
		"--emulated-version=1.35 --feature-gates=" + preferSame + "=false":                              "locked to true in 1.35",
		"--emulated-version=1.35 --feature-gates=StaleControllerConsistencyReplicaSet=true":             "there is none in 1.35",
		"--emulated-version=1.36 --feature-gates=" + leaseBreaker + "=false":                            "there is none in 1.36",
		"--emulated-version=1.34 --feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=true": "there is none in 1.34",
	} {
		if _, err := tuned(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

func TestGatesReachTheOptionsOfTheirControllers(t *testing.T) {
	for args, get := range map[string]func(registry.Options) bool{
		"--feature-gates=PodDeletionCost=false":                            func(o registry.Options) bool { return o.IgnorePodDeletionCost },
		"--feature-gates=" + terminatingReplicas + "=false":                func(o registry.Options) bool { return o.OmitTerminatingReplicas },
		"--emulated-version=1.34":                                          func(o registry.Options) bool { return o.OmitTerminatingReplicas },
		"--emulated-version=1.34 --feature-gates=" + preferSame + "=false": func(o registry.Options) bool { return o.OnlyPreferClose },
		"--emulated-version=1.36":                                          func(o registry.Options) bool { return o.NodeLifecycle.TrustCachedLeases },
		"--feature-gates=" + leaseBreaker + "=false":                       func(o registry.Options) bool { return o.NodeLifecycle.TrustCachedLeases },
	} {
		for given, want := range map[string]bool{args: true, "": false} {
			tune, err := tuned(t, strings.Fields(given)...)
			if err != nil {
				t.Fatal(err)
			}
			var o registry.Options
			tune.into(&o)
			if get(o) != want {
				t.Errorf("%q: %t, want %t", given, get(o), want)
			}
		}
	}
}
