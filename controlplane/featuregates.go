// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	_ "k8s.io/kubernetes/pkg/features" // registers Kubernetes' gates
)

// processGates are the gates this process runs with: Kubernetes reads them
// from process-wide variables, at any time, so they cannot change any more
// once a component may have read them.
var processGates struct {
	sync.Mutex
	fixed bool
	gates map[string]bool
}

func setFeatureGates(gates map[string]bool) error {
	processGates.Lock()
	defer processGates.Unlock()
	if processGates.fixed {
		if !maps.Equal(processGates.gates, gates) {
			return fmt.Errorf("%w: this process runs with %s, wanted are %s; Kubernetes keeps feature gates process-wide, use one process for each set of gates",
				ErrFeatureGates, formatGates(processGates.gates), formatGates(gates))
		}
		return nil
	}
	// All or nothing: an unknown or locked gate leaves the others unset.
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return fmt.Errorf("%w: %w", ErrFeatureGates, err)
	}
	utilfeature.DefaultMutableFeatureGate.AddMetrics()
	processGates.fixed, processGates.gates = true, maps.Clone(gates)
	return nil
}

func formatGates(gates map[string]bool) string {
	if len(gates) == 0 {
		return "the defaults"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		parts = append(parts, fmt.Sprintf("%s=%t", name, gates[name]))
	}
	return strings.Join(parts, ",")
}
