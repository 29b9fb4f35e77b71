// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "selinux-warning-controller"

// source is the source that the Events name, which users filter by. severalLabels is the reason of
// the Event about a Pod that mounts a volume with several labels.
// Source: k8s.io/kubernetes/pkg/controller/volume/selinuxwarning.
const (
	source        = "selinux_warning"
	severalLabels = "MultipleSELinuxLabels"
)

// Options changes how the controller works. There is nothing to change.
type Options struct{}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "persistentvolumeclaims", "persistentvolumes"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{storagev1.GroupName}, Resources: []string{"csidrivers"}, Verbs: []string{"list", "watch"}},
		events.Rights(),
	}
}

// Controller is the loop with its metrics.
type Controller struct {
	*controller.Controller
	*tracker
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, _ Options) (*Controller, error) {
	r := &reconciler{
		pods:     cache.Informer[*corev1.Pod](h),
		claims:   cache.Informer[*corev1.PersistentVolumeClaim](h),
		volumes:  cache.Informer[*corev1.PersistentVolume](h),
		drivers:  cache.Informer[*storagev1.CSIDriver](h),
		recorder: h.Recorder(source),
		tracker:  newTracker(),
	}
	r.byClaim = volumes.PodsByClaim(r.pods)
	loop := controller.New(Name, r.reconcile,
		controller.For(r.pods, changesUse),
		controller.Watches(r.claims, r.ofClaim, changesVolume),
		controller.Watches(r.volumes, r.ofVolume, changesClaim),
		controller.For(r.drivers, changesMount),
		controller.Workers(1),
	)
	return &Controller{loop, r.tracker}, nil
}

type reconciler struct {
	pods     cache.SharedInformer[*corev1.Pod]
	claims   cache.SharedInformer[*corev1.PersistentVolumeClaim]
	volumes  cache.SharedInformer[*corev1.PersistentVolume]
	drivers  cache.SharedInformer[*storagev1.CSIDriver]
	byClaim  cache.Index[*corev1.Pod]
	recorder *events.Recorder
	tracker  *tracker
}

// reconcile works on a Pod, or on a CSI driver: the key of a driver has no namespace.
func (r *reconciler) reconcile(_ context.Context, req controller.Request) (controller.Result, error) {
	if req.Key.Namespace == "" {
		return controller.Result{}, r.reconcileDriver(req.Key)
	}
	return controller.Result{}, r.reconcilePod(req.Key)
}

// reconcileDriver finds out whether a driver mounts with labels, and reports the conflicts that
// its volumes have because of it.
func (r *reconciler) reconcileDriver(key object.Key) error {
	driver, err := r.drivers.Get(key)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	r.reportAll(r.tracker.setDriver(key.Name, err == nil && mountsWithLabels(driver)))
	return nil
}

// reconcilePod finds out how a Pod uses its volumes, and reports its new conflicts.
func (r *reconciler) reconcilePod(key object.Key) error {
	pod, err := r.pods.Get(key)
	switch {
	case apierrors.IsNotFound(err), err == nil && podstate.Ended(pod):
		r.tracker.remove(key)
		return nil
	case err != nil:
		return err
	}
	u, err := usageOf(pod, func(v *corev1.Volume) (medium, bool, error) { return r.find(pod, v) })
	n := r.tracker.set(podID{key, pod.UID}, u)
	for _, volume := range n.mixed {
		r.recorder.Warning(pod, severalLabels, "Compare", "Volume %q is mounted twice with different SELinux labels inside this pod", volume)
	}
	r.reportAll(n.conflicts)
	return err
}

// find returns the medium of a volume of a Pod, and false while its claim is not bound: the claim
// or the volume enqueues the Pod then.
func (r *reconciler) find(pod *corev1.Pod, v *corev1.Volume) (medium, bool, error) {
	name := volumes.ClaimName(pod, v)
	if name == "" {
		return mediumOfInline(pod, v), true, nil
	}
	claim, err := r.claims.Get(object.Key{Namespace: pod.Namespace, Name: name})
	if err != nil {
		return medium{}, false, ignoreAbsent(err)
	}
	if !volumes.Uses(pod, v, claim) || claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return medium{}, false, nil
	}
	volume, err := r.volumes.Get(object.Key{Name: claim.Spec.VolumeName})
	if err != nil {
		return medium{}, false, ignoreAbsent(err)
	}
	if ref := volume.Spec.ClaimRef; ref == nil || ref.UID != claim.UID {
		return medium{}, false, nil
	}
	return mediumOf(volume), true, nil
}

// reportAll records an Event about the Pod of each conflict. A Pod that is gone has no conflict any
// more.
func (r *reconciler) reportAll(conflicts []conflict) {
	for _, c := range conflicts {
		if pod, err := r.pods.Get(c.pod.key); err == nil && pod.UID == c.pod.uid {
			r.recorder.Normal(pod, c.property.reason(), "Compare", "%s", c.note())
		}
	}
}

// ignoreAbsent returns nil for an object that does not exist, and any other error.
func ignoreAbsent(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
