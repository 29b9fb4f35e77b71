// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversionmigrator

import (
	"context"

	migrationv1 "k8s.io/api/storagemigration/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/runs"
)

// Codes of the reasons why a migration does not go on.
const (
	codeWaits     = "AnotherMigrationRuns"
	codeNotServed = "ResourceNotServed"
	codeFailed    = "MigrationFailed"
)

// about returns the object that a reason is about.
func about(m *migrationv1.StorageVersionMigration) runs.Object {
	return runs.Object{Group: kind.Group, Kind: kind.Kind, Name: m.Name, UID: m.UID}
}

// explain states the reasons of all migrations of a resource that do not go on.
func explain(ctx context.Context, p plan) {
	for _, m := range p.failed {
		controller.Because(ctx, controller.Reason{
			Code: codeFailed, Text: "the migration has failed, as its condition Failed says, and is not tried again",
			Ends: "another StorageVersionMigration is created", About: about(m),
		})
	}
	for _, m := range p.waiting {
		controller.Because(ctx, controller.Reason{
			Code: codeWaits, Text: "the migration {migration} of the same resource runs first",
			Params: controller.With("migration", p.active.Name), Until: about(p.active), About: about(m),
		})
	}
}
