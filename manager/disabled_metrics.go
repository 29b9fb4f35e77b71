// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import "slices"

// DisabledMetrics are names of metrics that are not served at /metrics.
func DisabledMetrics(names ...string) Option {
	return func(m *Manager) { m.disabledMetrics = append(m.disabledMetrics, names...) }
}

// without returns a function that gathers what another one does, without what has one of
// some names.
func without[F interface{ GetName() string }](names []string, gather func() ([]F, error)) func() ([]F, error) {
	return func() ([]F, error) {
		families, err := gather()
		return slices.DeleteFunc(families, func(f F) bool { return slices.Contains(names, f.GetName()) }), err
	}
}
