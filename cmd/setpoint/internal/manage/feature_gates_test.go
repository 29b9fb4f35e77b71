// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/endpointslice"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/replicationcontroller"
	"github.com/setpoint-io/setpoint/controllers/statefulset"
)

// The gates that several tests are about.
const (
	taintRules          = "DRADeviceTaintRules"
	terminatingReplicas = "DeploymentReplicaSetTerminatingReplicas"
	leaseBreaker        = "NodeControllerLeaseCircuitBreaker"
	suspendedJobs       = "MutableSchedulingDirectivesForSuspendedJobs"
	scaling             = "HPAGeneration HPAScaleToZero"
	unusedClaims        = "PersistentVolumeClaimUnusedSinceTime"
	preferSame          = "PreferSameTrafficDistribution"
	maxUnavailable      = "MaxUnavailableStatefulSet"
	recreateStrategy    = "StatefulSetRecreateStrategy"
	staleReplicaSets    = "StaleControllerConsistencyReplicaSet"
	semanticRevisions   = "StatefulSetSemanticRevisionComparison"
	ofWorkloads         = "DRAWorkloadResourceClaims WorkloadWithJob"
)

// turnsControllers are the gates that turn whole controllers on and off, which another test is
// about.
var turnsControllers = func() map[string]bool {
	all := map[string]bool{}
	for _, d := range registry.Known() {
		for _, name := range d.Requires() {
			all[name] = true
		}
	}
	return all
}()

func TestGatesAreOnAsUpstreamHasThemInTheVersionThatIsEmulated(t *testing.T) {
	for _, test := range []struct {
		name, args string
		off        string // those that are not on
	}{
		{"by default", "", words(recreateStrategy, ofWorkloads)},
		{"one that is switched off", "--feature-gates=PodDeletionCost=false", words("PodDeletionCost", recreateStrategy, ofWorkloads)},
		{"the lease is kept", "--feature-gates=" + releaseOnExit + "=false", words(releaseOnExit, recreateStrategy, ofWorkloads)},
		{"all of a stage", "--feature-gates=AllBeta=false", words(terminatingReplicas, scaling, maxUnavailable, suspendedJobs, leaseBreaker, unusedClaims, "PodDeletionCost", staleReplicaSets, recreateStrategy, semanticRevisions, ofWorkloads)},
		{"all of a stage but one", "--feature-gates=AllBeta=false,PodDeletionCost=true", words(terminatingReplicas, scaling, maxUnavailable, suspendedJobs, leaseBreaker, unusedClaims, staleReplicaSets, recreateStrategy, semanticRevisions, ofWorkloads)},
		{"1.36", "--emulated-version=1.36", words(taintRules, scaling, maxUnavailable, leaseBreaker, unusedClaims, recreateStrategy, ofWorkloads)},
		{"1.35", "--emulated-version=1.35", words(taintRules, scaling, maxUnavailable, suspendedJobs, leaseBreaker, unusedClaims, staleReplicaSets, recreateStrategy, ofWorkloads)},
		{"1.34", "--emulated-version=1.34", words(taintRules, terminatingReplicas, scaling, maxUnavailable, suspendedJobs, leaseBreaker, unusedClaims, staleReplicaSets, recreateStrategy, ofWorkloads)},
		{
			"1.34 with alpha ones", "--emulated-version=1.34 --feature-gates=AllAlpha=true,PreferSameTrafficDistribution=false",
			words(taintRules, "HPAGeneration", suspendedJobs, leaseBreaker, unusedClaims, preferSame, staleReplicaSets, recreateStrategy, ofWorkloads),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tune, err := tuned(t, strings.Fields(test.args)...)
			if err != nil {
				t.Fatal(err)
			}
			var off []string
			for _, g := range gatesRead(tune.known) {
				if !turnsControllers[g.name] && !tune.gates[g.name] {
					off = append(off, g.name)
				}
			}
			if got := strings.Join(off, " "); got != test.off {
				t.Errorf("off are %s, want %s", got, test.off)
			}
		})
	}
}

// words returns all words, in order, because gates are read in the order of their names.
func words(all ...string) string {
	sorted := strings.Fields(strings.Join(all, " "))
	slices.Sort(sorted)
	return strings.Join(sorted, " ")
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
		"--emulated-version=1.36 --feature-gates=AllAlpha=true":            func(tune *tuning) bool { return options[statefulset.Options](t, tune).IgnoreMaxUnavailable },
		"--feature-gates=StatefulSetRecreateStrategy=true":                 func(tune *tuning) bool { return options[statefulset.Options](t, tune).Recreate },
		"--feature-gates=StatefulSetSemanticRevisionComparison=false":      func(tune *tuning) bool { return options[statefulset.Options](t, tune).ExactRevisions },
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
func TestEveryGateThatIsReadIsInTheTable(t *testing.T) {
	obeyed := map[string]bool{}
	for _, g := range gatesRead(registry.Known()) {
		obeyed[g.name] = true
		if len(g.specs) == 0 {
			t.Errorf("the table has no versions of %s", g.name)
		}
	}
	for _, d := range registry.Known() {
		for _, g := range d.Gates {
			if !obeyed[g.Name] {
				t.Errorf("%s obeys %s, which is not among the gates that are read", d.Name, g.Name)
			}
		}
	}
	if len(obeyed) < 8 {
		t.Errorf("%d gates are read, which are too few", len(obeyed))
	}
}

// "setpoint up" has no gates and tells controllers nothing of them.
func TestWithoutFlagsControllersAreMadeWithTheirDefaults(t *testing.T) {
	tune, err := tuned(t)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range registry.Known() {
		if got := tune.known[i].Options; !reflect.DeepEqual(got, d.Options) {
			t.Errorf("%s is made with %+v, want %+v", d.Name, got, d.Options)
		}
	}
}

// Installers hand one list of gates to every component.
func TestEveryGateOfAnyComponentIsAccepted(t *testing.T) {
	read := gatesRead(registry.Known())
	checked := 0
	for line := range strings.Lines(knownGates) {
		name, _, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		checked++
		for _, value := range []string{"true", "false"} {
			tune, err := tuned(t, "--feature-gates="+name+"="+value)
			isRead := slices.ContainsFunc(read, func(g gate) bool { return g.name == name })
			if err != nil && !isRead {
				t.Errorf("%s=%s: %v", name, value, err)
			}
			if got := slices.Contains(tune.featureGates.idle(read), name); got == isRead {
				t.Errorf("%s counts as without effect: %t", name, got)
			}
		}
	}
	if checked < 300 {
		t.Errorf("%d gates in the table, which is too short", checked)
	}
}

func TestAGateThatIsOffKeepsItsControllerFromRunning(t *testing.T) {
	const gate, controller = "StorageVersionMigrator", "storage-version-migrator-controller"
	for args, runs := range map[string]bool{
		"":                                   true,
		"--feature-gates=" + gate + "=false": false,
		"--emulated-version=1.36":            false,
		"--emulated-version=1.36 --feature-gates=" + gate + "=true": true,
	} {
		tune, err := tuned(t, strings.Fields(args)...)
		if err != nil {
			t.Fatal(err)
		}
		chosen, err := registry.Select(tune.known, []string{controller})
		if err != nil {
			t.Fatal(err)
		}
		_, run, err := newManager(&rest.Config{Host: "https://127.0.0.1:1"}, chosen, controllers.Cluster{}, together, slog.New(slog.NewTextHandler(t.Output(), nil)))
		if err != nil || (len(run) == 1) != runs {
			t.Errorf("%q: %d controllers run (%v), want it to run: %t", args, len(run), err, runs)
		}
	}
}
