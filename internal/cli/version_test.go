// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import "testing"

func TestTheVersionIsThatOfKubernetesNotOfItsModules(t *testing.T) {
	for module, want := range map[string]string{"v0.37.2": "v1.37.2", "v0.38.0-rc.1": "v1.38.0-rc.1", "v1.5.2": "v1.5.2", "": ""} {
		if got := kubernetesOf(module); got != want {
			t.Errorf("the modules %q are of Kubernetes %q, want %q", module, got, want)
		}
	}
}
