// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/cmd/setpoint/internal/manage"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
)

func TestTheGatesOfTheClusterTurnControllersOnAndOff(t *testing.T) {
	const controller = "podgroup-protection-controller"
	for text, want := range map[string]bool{
		"GenericWorkload=true": true, "GenericWorkload=false": false, "WatchList=true": false,
		"AllBeta=true": true, "AllBeta=true,GenericWorkload=false": false,
	} {
		var gates manage.FeatureGates
		if err := gates.Set(text); err != nil {
			t.Fatal(err)
		}
		all := registry.Known()
		if err := gates.Obey(all); err != nil {
			t.Fatal(err)
		}
		run := manage.Startable(all)
		if got := slices.ContainsFunc(run, func(d *controllers.Descriptor) bool { return d.Name == controller }); got != want {
			t.Errorf("--feature-gates=%s: %s runs: %t, want %t", text, controller, got, want)
		}
		if len(run) < len(all)/2 {
			t.Errorf("--feature-gates=%s: %d of %d controllers run", text, len(run), len(all))
		}
	}
}

// A wrong gate is an error of the command line, before a cluster starts.
func TestAGateThatKubernetesDoesNotHaveIsSaid(t *testing.T) {
	var gates manage.FeatureGates
	if err := gates.Set("GenericWorklod=true"); err == nil || !strings.Contains(err.Error(), "GenericWorkload") {
		t.Errorf("want the nearest name: %v", err)
	}
}
