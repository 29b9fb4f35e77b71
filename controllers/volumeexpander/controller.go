// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package volumeexpander

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "persistentvolume-expander-controller"

// source is the source that the Events name, which users filter by, and expanding is their reason.
// Source: k8s.io/kubernetes/pkg/controller/volume/expand and volume/events.
const (
	source    = "volume_expand"
	expanding = "ExternalExpanding"
)

// Codes of the reasons why a claim has not grown.
const (
	codeWaits = "WaitsForResizer"
	codeFlex  = "FlexVolumeNotResized"
)

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many claims are worked on at a time.
	Workers int
}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims/status"}, Verbs: []string{"patch"}},
		events.Rights(),
	}
}

type reconciler struct {
	claims   cache.SharedInformer[*corev1.PersistentVolumeClaim]
	volumes  client.Typed[*corev1.PersistentVolume]
	recorder *events.Recorder
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		claims:   cache.Informer[*corev1.PersistentVolumeClaim](h),
		volumes:  client.For[*corev1.PersistentVolume](h.Client()),
		recorder: h.Recorder(source),
	}
	return controller.New(Name, r.reconcile, controller.For(r.claims, growthChanges), controller.Workers(o.Workers)), nil
}

// growthChanges chooses the events with which the growth of a claim begins, changes or ends.
func growthChanges(e cache.Event[*corev1.PersistentVolumeClaim]) bool {
	if !e.New.Exists() {
		return false
	}
	now, err := e.New.Object()
	if err != nil || e.Kind != cache.Updated {
		return err != nil || wantsMore(now)
	}
	was, err := e.Old.Object()
	if err != nil {
		return true
	}
	wanted, wants := was.Spec.Resources.Requests[corev1.ResourceStorage], now.Spec.Resources.Requests[corev1.ResourceStorage]
	return wantsMore(was) != wantsMore(now) || wantsMore(now) && wanted.Cmp(wants) != 0
}

// reconcile says who resizes the volume of a claim that asks for more than it has.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	claim, err := r.claims.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil || !wantsMore(claim) {
		return controller.Result{}, err
	}
	volume, err := r.volumes.Get(ctx, object.Key{Name: claim.Spec.VolumeName})
	if err != nil {
		return controller.Result{}, fmt.Errorf("reading the volume %s of claim %s: %w", claim.Spec.VolumeName, req.Key, err)
	}
	if ref := volume.Spec.ClaimRef; ref == nil || ref.Namespace != claim.Namespace || ref.UID != claim.UID {
		return controller.Result{}, fmt.Errorf("volume %s is not bound to claim %s, which asks for more storage", volume.Name, req.Key)
	}
	if volume.Spec.FlexVolume != nil {
		controller.Because(ctx, controller.Reason{
			Code: codeFlex, Text: "volume {volume} is a FlexVolume, which this controller does not resize",
			Params: controller.With("volume", volume.Name), Ends: "kube-controller-manager runs persistentvolume-expander-controller",
		})
		return controller.Result{}, nil
	}
	return controller.Result{}, r.handOver(ctx, claim, volume)
}

// handOver leaves the growth of a claim to the driver of its volume.
func (r *reconciler) handOver(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	m, migrated := migrationOf(volume)
	driver := m.driver
	if csi := volume.Spec.CSI; csi != nil {
		driver = csi.Driver
	}
	wants := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	controller.Because(ctx, controller.Reason{
		Code: codeWaits, Text: "the claim waits until the resizer of {driver} has grown volume {volume} to {size}",
		Params: controller.With("driver", cmp.Or(driver, "its plugin"), "volume", volume.Name, "size", wants.String()),
		Ends:   "the status of the claim has that size",
	})
	if !migrated {
		r.recorder.Normal(claim, expanding, "Resize", "waiting for an external controller to expand this PVC")
		return nil
	}
	r.recorder.Normal(claim, expanding, "Resize", "CSI migration enabled for %s; waiting for external resizer to expand the pvc", m.plugin)
	err := r.nameResizer(ctx, claim, driver)
	if err != nil && !apierrors.IsConflict(err) { // a claim that has changed is judged again
		r.recorder.Warning(claim, expanding, "Resize", "error setting resizer annotation to pvc %s, with error %v", object.KeyOf(claim), err)
	}
	return err
}

// nameResizer writes the name of the driver that resizes the volume of a claim. The right to write
// the status of claims is enough for it, and so the patch is one of the status.
func (r *reconciler) nameResizer(ctx context.Context, claim *corev1.PersistentVolumeClaim, driver string) error {
	if claim.Annotations[volumes.StorageResizer] == driver {
		return nil
	}
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{
		"annotations":     map[string]string{volumes.StorageResizer: driver},
		"resourceVersion": claim.ResourceVersion,
		"uid":             claim.UID,
	}})
	if err != nil {
		return err
	}
	_, err = r.claims.Sub("status").Patch(ctx, object.KeyOf(claim), patch)
	if err != nil && !client.AbsentAt(err, object.KeyOf(claim)) {
		return fmt.Errorf("writing the annotation %s of claim %s: %w", volumes.StorageResizer, object.KeyOf(claim), err)
	}
	return nil
}
