// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"slices"
	"testing"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
)

func TestTheGatesOfTheClusterTurnControllersOnAndOff(t *testing.T) {
	const controller = "podgroup-protection-controller"
	for text, want := range map[string]bool{"GenericWorkload=true": true, "GenericWorkload=false": false, "WatchList=true": false} {
		gates := gatesFlag{}
		if err := gates.Set(text); err != nil {
			t.Fatal(err)
		}
		all := registry.Known()
		run := gates.obeyedBy(registry.Known())
		if got := slices.ContainsFunc(run, func(d *controllers.Descriptor) bool { return d.Name == controller }); got != want {
			t.Errorf("--feature-gates=%s: %s runs: %t, want %t", text, controller, got, want)
		}
		if len(run) < len(all)/2 {
			t.Errorf("--feature-gates=%s: %d of %d controllers run", text, len(run), len(all))
		}
	}
}
