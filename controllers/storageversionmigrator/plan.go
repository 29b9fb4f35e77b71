// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversionmigrator

import (
	"cmp"
	"slices"

	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// plan is what is to be done with the migrations of one resource.
type plan struct {
	ended   []*migrationv1.StorageVersionMigration // that still have the condition Running
	active  *migrationv1.StorageVersionMigration   // runs, or is the next to run; nil is none
	waiting []*migrationv1.StorageVersionMigration // behind the active one, in their order
	failed  []*migrationv1.StorageVersionMigration
}

// decide sorts the migrations of one resource. The oldest one runs first, unless another runs
// already. A migration that is being deleted does not run any more.
func decide(all []*migrationv1.StorageVersionMigration) plan {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *migrationv1.StorageVersionMigration) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var p plan
	var open []*migrationv1.StorageVersionMigration
	for _, m := range all {
		if is(m, migrationv1.MigrationFailed) {
			p.failed = append(p.failed, m)
		}
		switch {
		case !hasEnded(m) && m.DeletionTimestamp == nil:
			open = append(open, m)
		case hasEnded(m) && isRunning(m):
			p.ended = append(p.ended, m)
		}
	}
	if len(open) > 0 {
		first := max(0, slices.IndexFunc(open, isRunning))
		p.active = open[first]
		p.waiting = slices.Delete(open, first, first+1)
	}
	return p
}

func isRunning(m *migrationv1.StorageVersionMigration) bool {
	return is(m, migrationv1.MigrationRunning)
}

// hasEnded reports whether a migration has succeeded or failed.
func hasEnded(m *migrationv1.StorageVersionMigration) bool {
	return is(m, migrationv1.MigrationSucceeded) || is(m, migrationv1.MigrationFailed)
}

func is(m *migrationv1.StorageVersionMigration, c migrationv1.MigrationConditionType) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, string(c))
}
