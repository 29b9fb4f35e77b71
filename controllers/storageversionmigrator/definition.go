// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversionmigrator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// fieldManager writes the status of definitions. Source:
// k8s.io/kubernetes/pkg/controller/storageversionmigrator, MigrationRunnerControllerName.
const fieldManager = "migration-runner-controller"

// storageMigrating is the condition of a definition whose objects are migrated.
// Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1, StorageMigrating.
const storageMigrating = "StorageMigrating"

var definitions = object.Resource{
	Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions", Kind: "CustomResourceDefinition",
}

// definition is what the controller reads of a CustomResourceDefinition.
type definition struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Versions []struct {
			Name    string `json:"name"`
			Storage bool   `json:"storage"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// migrating returns the condition StorageMigrating, or nil.
func (d *definition) migrating() *metav1.Condition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == storageMigrating {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

// storageVersion returns the version in which new objects are stored.
func (d *definition) storageVersion() string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// definition reads the definition of a resource from the server. It is nil for a resource that
// is not a custom one.
func (r *reconciler) definition(ctx context.Context, resource metav1.GroupResource) (*definition, error) {
	if resource.Group == "" {
		return nil, nil
	}
	key := object.Key{Name: resource.Resource + "." + resource.Group}
	got, err := client.ForResource[*unstructured.Unstructured](r.client, definitions).Get(ctx, key)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading customresourcedefinition %s: %w", key.Name, err)
	}
	d := &definition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, d); err != nil {
		return nil, fmt.Errorf("reading customresourcedefinition %s: %w", key.Name, err)
	}
	return d, nil
}

// begin notes in the definition of a custom resource that its objects are migrated.
func (r *reconciler) begin(ctx context.Context, resource metav1.GroupResource, migration string) error {
	d, err := r.definition(ctx, resource)
	if d == nil || err != nil {
		return err
	}
	return r.applyTo(ctx, d, metav1.ConditionTrue, reasonRunning, fmt.Sprintf("Migration %s is running", migration), nil)
}

// finish notes in the definition of a custom resource that its objects are not migrated any more.
// After a success the storage version is the only one in which objects are stored, unless the
// definition has changed since the migration began.
func (r *reconciler) finish(ctx context.Context, resource metav1.GroupResource, succeeded bool) error {
	d, err := r.definition(ctx, resource)
	if d == nil || err != nil {
		return err
	}
	was := d.migrating()
	if was == nil || was.Status != metav1.ConditionTrue {
		return nil // this was done before
	}
	switch {
	case !succeeded:
		return r.applyTo(ctx, d, metav1.ConditionFalse, "MigrationFailed", "The migration has failed", nil)
	case was.ObservedGeneration != d.Generation:
		return r.applyTo(ctx, d, metav1.ConditionFalse, "MigrationSucceeded",
			"The migration has succeeded but the stored versions have not been updated due to a generation mismatch", nil)
	}
	return r.applyTo(ctx, d, metav1.ConditionFalse, "MigrationSucceeded",
		"The migration has succeeded and the stored versions have been updated", []string{d.storageVersion()})
}

// applyTo applies the condition StorageMigrating, and the stored versions unless they are nil, to
// the status of a definition as it was read: if the definition has changed since, the result is a
// conflict, and the next run reads it again.
func (r *reconciler) applyTo(ctx context.Context, d *definition, value metav1.ConditionStatus, reason, message string, stored []string) error {
	now := map[string]any{"conditions": []metav1.Condition{{
		Type: storageMigrating, Status: value, Reason: reason, Message: message,
		LastTransitionTime: metav1.Time{Time: r.now().Truncate(time.Second)}, ObservedGeneration: d.Generation,
	}}}
	if stored != nil {
		now["storedVersions"] = stored
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": definitions.Group + "/" + definitions.Version, "kind": definitions.Kind,
		"metadata": map[string]any{"name": d.Name, "uid": d.UID, "resourceVersion": d.ResourceVersion},
		"status":   now,
	})
	if err != nil {
		return err
	}
	status := client.ForResource[*unstructured.Unstructured](r.client, definitions).Sub("status")
	_, err = status.Patch(ctx, object.Key{Name: d.Name}, client.Patch{Type: types.ApplyPatchType, Data: data},
		client.FieldManager(fieldManager), client.Force(), client.MetadataAnswer())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the condition %s of customresourcedefinition %s: %w", storageMigrating, d.Name, err)
	}
	return nil
}
