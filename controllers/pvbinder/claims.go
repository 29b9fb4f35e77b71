// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// reconcileClaim takes the next step of one claim, and of the volume that it is bound to.
func (b *binder) reconcileClaim(ctx context.Context, req controller.Request) (controller.Result, error) {
	claim, err := b.claims.Get(req.Key)
	if apierrors.IsNotFound(err) {
		b.pools.forgetClaim(req.Key)
		b.metrics.operations.end(req.Key)
		b.reminders.forget(req.Key)
		b.passOn(req.Key, nil)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if !isWaiting(claim) {
		b.pools.forgetClaim(req.Key)
	}
	if next := migratedClaim(claim); next != nil {
		if claim, err = b.claims.Update(ctx, next); err != nil {
			return controller.Result{}, ignoreAbsent(fmt.Errorf("writing the annotation of the driver: %w", err), req.Key)
		}
	}
	v, err := b.claimView(ctx, claim)
	if err != nil {
		return controller.Result{}, err
	}
	p := decideClaim(v)
	if p.match {
		chosen, err := b.pools.of(volumes.ClassOf(claim)).choose(claim, b.free.Find(volumes.ClassOf(claim)))
		if err != nil {
			return controller.Result{}, err
		}
		if p = (claimPlan{bind: chosen}); chosen == nil {
			p = decideUnmatched(v)
		}
	}
	if p.reason != nil {
		controller.Because(ctx, *p.reason)
	}
	result, err := b.applyClaim(ctx, v, &p)
	if err = ignoreAbsent(err, req.Key); err != nil {
		if p.bind != nil {
			b.pools.of(volumes.ClassOf(claim)).release(p.bind.Name)
		}
		return result, err // the claim runs again
	}
	b.passOn(req.Key, p.bind)
	return result, nil
}

// ignoreAbsent returns nil if an error says that the claim of a run is gone.
func ignoreAbsent(err error, claim object.Key) error {
	if client.AbsentAt(err, claim) {
		return nil
	}
	return err
}

// passOn enqueues the volumes that a claim was enqueued for and did not take, so that they are
// offered to the next claim.
func (b *binder) passOn(key object.Key, taken *corev1.PersistentVolume) {
	for _, name := range b.pools.withdraw(key) {
		if taken == nil || taken.Name != name {
			b.volumeLoop.Queue().AddWith(workqueue.Add{Cause: workqueue.Cause{Source: "claim " + key.String(), Verb: workqueue.Enqueued}}, object.Key{Name: name})
		}
	}
}

// claimView reads what a claim is decided by.
func (b *binder) claimView(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*claimView, error) {
	v := &claimView{claim: claim, options: &b.Options}
	var err error
	if claim.Spec.VolumeName != "" {
		v.named, v.behind, err = b.namedBy(ctx, claim)
		return v, err
	}
	refers, err := cache.Objects(b.referring.Find(object.KeyOf(claim).String()))
	if err != nil {
		return nil, err
	}
	v.reserved = reserved(refers, claim)
	for _, volume := range refers {
		if volume.Spec.ClaimRef.UID == claim.UID && volume != v.reserved {
			v.unfit = volume
		}
	}
	if v.class, err = b.classes.Get(object.Key{Name: volumes.ClassOf(claim)}); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if !volumes.HasClass(claim) {
		var all []*storagev1.StorageClass
		if all, err = b.classes.List(nil); err != nil {
			return nil, err
		}
		v.fallback = volumes.DefaultClass(all)
	}
	if v.waitsForConsumer() {
		if v.unscheduled, err = b.unscheduled(claim); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// namedBy returns the volume that a claim names, or nil if it does not exist. The server answers for
// a volume that the cache does not show if the claim would be Lost without it: another process may
// have bound the claim just now. behind reports that the server has such a volume.
func (b *binder) namedBy(ctx context.Context, claim *corev1.PersistentVolumeClaim) (volume *corev1.PersistentVolume, behind bool, err error) {
	key := object.Key{Name: claim.Spec.VolumeName}
	volume, err = b.volumes.Get(key)
	if !apierrors.IsNotFound(err) {
		return volume, false, err
	}
	if _, completed := claim.Annotations[volumes.BindCompleted]; !completed || claim.Status.Phase == corev1.ClaimLost {
		return nil, false, nil
	}
	volume, err = b.volumes.Server().Get(ctx, key)
	switch {
	case client.AbsentAt(err, key):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading volume %s, which the cache does not have: %w", key.Name, err)
	}
	return volume, true, nil
}

// unscheduled returns the names of the Pods that use a claim and have no Node.
func (b *binder) unscheduled(claim *corev1.PersistentVolumeClaim) ([]string, error) {
	pods, err := cache.Objects(b.users.Find(object.KeyOf(claim).String()))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pod := range pods {
		if pod.Spec.NodeName == "" && !volumes.Stopped(pod) {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// applyClaim does what a plan says.
func (b *binder) applyClaim(ctx context.Context, v *claimView, p *claimPlan) (controller.Result, error) {
	claim := v.claim
	if p.bind != nil {
		b.reminders.forget(object.KeyOf(claim))
		err := b.bind(ctx, p.bind, claim)
		if err == nil {
			b.metrics.succeeds(object.KeyOf(claim))
		}
		return whileBehind(v.behind), b.counted(claim, err)
	}
	if p.classify != "" {
		next := claim.DeepCopy()
		next.Spec.StorageClassName = &p.classify
		_, err := b.claims.Update(ctx, next)
		b.metrics.classify(err)
		return controller.Result{}, wrap(err, "setting the storage class of the claim")
	}
	if p.provision != "" {
		b.metrics.operations.begin(claim, p.provision, operationProvision)
	}
	var err error
	switch {
	case p.inTree:
		err = b.counted(claim, b.makeHostPath(ctx, v))
	case p.provision != "":
		if claim, err = b.askProvisioner(ctx, claim, p.provision); err != nil {
			b.recorder.Warning(v.claim, reasonProvisioningFailed, actionProvision, "Error saving claim: %v", err)
			return controller.Result{}, b.counted(v.claim, err)
		}
	case p.pend:
		err = b.writeStatus(ctx, unboundStatus(claim, corev1.ClaimPending))
	case p.lose && claim.Status.Phase != corev1.ClaimLost:
		if err = b.writeStatus(ctx, unboundStatus(claim, corev1.ClaimLost)); err == nil {
			b.recorder.Record(claim, *p.event)
		}
	}
	if p.event == nil || p.always {
		return controller.Result{}, err
	}
	due, next := b.reminders.due(claim, *p.event, b.now())
	if due {
		b.recorder.Record(claim, *p.event)
	}
	return controller.Result{After: next}, err
}

// counted returns err. If it is an error, the metrics count it as one of the operation for the
// object.
func (b *binder) counted(o object.Object, err error) error {
	if err != nil {
		b.metrics.fails(o)
	}
	return err
}

// wrap adds what was being done to an error, if there is one.
func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// writeStatus writes the status of a claim; nil is none to write.
func (b *binder) writeStatus(ctx context.Context, next *corev1.PersistentVolumeClaim) error {
	if next == nil {
		return nil
	}
	_, err := b.claims.UpdateStatus(ctx, next)
	return wrap(err, "writing the status of the claim")
}

// bind binds a volume and a claim to each other. Each of the four writes is left out if it is
// done, so that the next run takes up a binding that was interrupted. If the claim is deleted
// meanwhile, the volume is released like that of any claim: it may have been used.
func (b *binder) bind(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	var err error
	if next := boundVolume(volume, claim); next != nil {
		if volume, err = b.volumes.Update(ctx, next); err != nil {
			return ofVolume(fmt.Errorf("binding volume %s to the claim: %w", next.Name, err), next)
		}
	}
	if next := inPhase(volume, corev1.VolumeBound); next != nil {
		if volume, err = b.volumes.UpdateStatus(ctx, next); err != nil {
			return ofVolume(fmt.Errorf("writing the phase of volume %s: %w", next.Name, err), next)
		}
	}
	if next := boundClaim(claim, volume); next != nil {
		if claim, err = b.claims.Update(ctx, next); err != nil {
			return fmt.Errorf("binding the claim to volume %s: %w", volume.Name, err)
		}
	}
	next, err := boundStatus(claim, volume)
	if err != nil {
		return err
	}
	return b.writeStatus(ctx, next)
}

// ofVolume returns the error of a write of a volume. If it says that the volume is gone, the result does not
// wrap it: the claim may have the name of the volume, and would count as gone.
func ofVolume(err error, volume *corev1.PersistentVolume) error {
	if client.AbsentAt(err, object.KeyOf(volume)) {
		return errors.New("the volume is gone: " + err.Error())
	}
	return err
}

// unbind makes a volume free again.
func (b *binder) unbind(ctx context.Context, volume *corev1.PersistentVolume) error {
	next, err := b.volumes.Update(ctx, unboundVolume(volume))
	if err != nil {
		return fmt.Errorf("freeing volume %s: %w", volume.Name, err)
	}
	return b.writePhase(ctx, next, corev1.VolumeAvailable)
}

// writePhase writes the phase of a volume if it has another one.
func (b *binder) writePhase(ctx context.Context, volume *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) error {
	next := inPhase(volume, phase)
	if next == nil {
		return nil
	}
	if _, err := b.volumes.UpdateStatus(ctx, next); err != nil {
		return fmt.Errorf("writing the phase of volume %s: %w", volume.Name, err)
	}
	return nil
}

// askProvisioner writes the annotations that a driver waits for.
func (b *binder) askProvisioner(ctx context.Context, claim *corev1.PersistentVolumeClaim, driver string) (*corev1.PersistentVolumeClaim, error) {
	if claim.Annotations[volumes.StorageProvisioner] == driver {
		return claim, nil
	}
	next := claim.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[volumes.StorageProvisioner] = driver
	next.Annotations[volumes.BetaStorageProvisioner] = driver
	if again := migratedClaim(next); again != nil {
		next = again
	}
	answer, err := b.claims.Update(ctx, next)
	return answer, wrap(err, "writing the annotation of the provisioner")
}
