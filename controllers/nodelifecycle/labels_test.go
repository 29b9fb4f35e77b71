// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"maps"
	"testing"
)

func TestBetaLabelsFollowTheStableOnes(t *testing.T) {
	type labels = map[string]string
	for name, c := range map[string]struct{ has, want labels }{
		"no labels":         {nil, nil},
		"only beta labels":  {labels{labelOSBeta: "linux"}, nil},
		"both agree":        {labels{"kubernetes.io/os": "linux", labelOSBeta: "linux"}, nil},
		"beta is missing":   {labels{"kubernetes.io/os": "linux"}, labels{labelOSBeta: "linux"}},
		"beta is different": {labels{"kubernetes.io/arch": "arm64", labelArchBeta: "amd64"}, labels{labelArchBeta: "arm64"}},
		"beta is empty":     {labels{"kubernetes.io/arch": "arm64", labelArchBeta: ""}, labels{labelArchBeta: "arm64"}},
		"both are missing": {
			labels{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
			labels{labelOSBeta: "linux", labelArchBeta: "amd64"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := labelsToSet(c.has); !maps.Equal(got, c.want) {
				t.Errorf("labelsToSet(%v) = %v, want %v", c.has, got, c.want)
			}
		})
	}
}
