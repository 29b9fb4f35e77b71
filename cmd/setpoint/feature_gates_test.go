// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/endpointslice"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/replicationcontroller"
)

// The gates that several tests are about.
const (
	terminatingReplicas = "DeploymentReplicaSetTerminatingReplicas"
	leaseBreaker        = "NodeControllerLeaseCircuitBreaker"
	preferSame          = "PreferSameTrafficDistribution"
)

func TestGatesAreOnAsUpstreamHasThemInTheVersionThatIsEmulated(t *testing.T) {
	for _, test := range []struct {
		name, args string
		off        string // those that are not on
	}{
		{"by default", "", ""},
		{"one that is switched off", "--feature-gates=PodDeletionCost=false", "PodDeletionCost"},
		{"the lease is kept", "--feature-gates=" + releaseOnExit + "=false", releaseOnExit},
		{"all of a stage", "--feature-gates=AllBeta=false", terminatingReplicas + " " + leaseBreaker + " PodDeletionCost StaleControllerConsistencyReplicaSet"},
		{"all of a stage but one", "--feature-gates=AllBeta=false,PodDeletionCost=true", terminatingReplicas + " " + leaseBreaker + " StaleControllerConsistencyReplicaSet"},
		{"1.36", "--emulated-version=1.36", leaseBreaker},
		{"1.35", "--emulated-version=1.35", leaseBreaker + " StaleControllerConsistencyReplicaSet"},
		{"1.34", "--emulated-version=1.34", terminatingReplicas + " " + leaseBreaker + " StaleControllerConsistencyReplicaSet"},
		{
			"1.34 with alpha ones", "--emulated-version=1.34 --feature-gates=AllAlpha=true,PreferSameTrafficDistribution=false",
			leaseBreaker + " PreferSameTrafficDistribution StaleControllerConsistencyReplicaSet",
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
	for args, get := range map[string]func(*tuning) bool{
		"--feature-gates=PodDeletionCost=false":                            func(tune *tuning) bool { return options[replicaset.Options](t, tune).IgnoreDeletionCost },
		"--feature-gates=" + terminatingReplicas + "=false":                func(tune *tuning) bool { return options[deployment.Options](t, tune).OmitTerminating },
		"--emulated-version=1.34":                                          func(tune *tuning) bool { return options[replicaset.Options](t, tune).OmitTerminating },
		"--emulated-version=1.34 --feature-gates=" + preferSame + "=false": func(tune *tuning) bool { return options[endpointslice.Options](t, tune).OnlyPreferClose },
		"--emulated-version=1.36":                                          func(tune *tuning) bool { return options[nodelifecycle.Options](t, tune).TrustCachedLeases },
		"--feature-gates=" + leaseBreaker + "=false":                       func(tune *tuning) bool { return options[nodelifecycle.Options](t, tune).TrustCachedLeases },
		"--feature-gates=AllBeta=false":                                    func(tune *tuning) bool { return options[replicationcontroller.Options](t, tune).IgnoreDeletionCost },
	} {
		for given, want := range map[string]bool{args: true, "": false} {
			tune, err := tuned(t, strings.Fields(given)...)
			if err != nil {
				t.Fatal(err)
			}
			if got := get(tune); got != want {
				t.Errorf("%q: %t, want %t", given, got, want)
			}
		}
	}
}

// Without a row in the table a gate would be off.
func TestEveryGateOfAControllerIsInTheTable(t *testing.T) {
	tune, err := tuned(t)
	if err != nil {
		t.Fatal(err)
	}
	obeyed := 0
	for _, d := range tune.known {
		for _, g := range d.Gates {
			obeyed++
			if _, known := tune.gates[g.Name]; !known {
				t.Errorf("%s obeys %s, which is not among the gates that are read", d.Name, g.Name)
			}
		}
	}
	if obeyed == 0 {
		t.Error("no controller obeys a gate")
	}
}

// Installers hand one list of gates to every component.
func TestEveryGateOfAnyComponentIsAccepted(t *testing.T) {
	checked := 0
	for line := range strings.Lines(knownGates) {
		name, _, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		checked++
		for _, value := range []string{"true", "false"} {
			tune, err := tuned(t, "--feature-gates="+name+"="+value)
			read := slices.ContainsFunc(gates(), func(g gate) bool { return g.name == name })
			if err != nil && !read {
				t.Errorf("%s=%s: %v", name, value, err)
			}
			if got := slices.Contains(tune.featureGates.idle(), name); got == read {
				t.Errorf("%s counts as without effect: %t", name, got)
			}
		}
	}
	if checked < 300 {
		t.Errorf("%d gates in the table, which is too short", checked)
	}
	for _, g := range gates() {
		if err := known(g.name); err != nil {
			t.Error(err)
		}
	}
}
