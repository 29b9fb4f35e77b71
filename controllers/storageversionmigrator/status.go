// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversionmigrator

import (
	"context"
	"fmt"

	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Reasons of conditions. Source: k8s.io/kubernetes/pkg/controller/storageversionmigrator.
const (
	reasonRunning   = "MigrationRunning"
	reasonSucceeded = "StorageVersionMigrationSucceeded"
	reasonFailed    = "StorageVersionMigrationFailed"
	reasonCompleted = "MigrationCompleted"
)

// progress is how far a migration is: total objects, of which left are not migrated yet. The zero
// progress is that of a migration whose objects were not listed yet.
type progress struct{ left, total int }

// message is that of the condition Running. trouble is an error that passes, or nil.
func (p progress) message(trouble error) string {
	text := "The migration is running"
	switch {
	case p.left > 0:
		text += fmt.Sprintf(", %d/%d objects not yet migrated", p.left, p.total)
	case p.total > 0:
		text += fmt.Sprintf(", %d objects verified migrated", p.total)
	}
	if trouble != nil {
		text += fmt.Sprintf("; transient error: %v", trouble)
	}
	return text
}

// set sets a condition.
func set(m *migrationv1.StorageVersionMigration, c migrationv1.MigrationConditionType, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: string(c), Status: status, Reason: reason, Message: message, ObservedGeneration: m.Generation,
	})
}

// running sets the condition Running.
func running(m *migrationv1.StorageVersionMigration, p progress, trouble error) {
	set(m, migrationv1.MigrationRunning, metav1.ConditionTrue, reasonRunning, p.message(trouble))
}

// fail sets the condition Failed.
func fail(m *migrationv1.StorageVersionMigration, message string) {
	set(m, migrationv1.MigrationFailed, metav1.ConditionTrue, reasonFailed, message)
}

// write changes the status of a migration. The patch has the conditions of this controller alone,
// so it needs no resourceVersion. A migration that is gone is no failure.
func (r *reconciler) write(ctx context.Context, m *migrationv1.StorageVersionMigration, change func(*migrationv1.StorageVersionMigration)) error {
	next := m.DeepCopy()
	change(next)
	if equality.Semantic.DeepEqual(m.Status, next.Status) {
		return nil
	}
	patch, err := client.StrategicPatch(map[string]any{"metadata": map[string]any{"uid": m.UID}, "status": next.Status})
	if err != nil {
		return err
	}
	_, err = r.migrations.Sub("status").Patch(ctx, object.KeyOf(m), patch)
	if apierrors.IsNotFound(err) || client.AbsentAt(err, object.KeyOf(m)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of storageversionmigration %s: %w", m.Name, err)
	}
	return nil
}
