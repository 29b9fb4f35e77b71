// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/object"
)

// What the attacher leaves on objects.
// Source: github.com/kubernetes-csi/external-attacher/pkg/controller, GetFinalizerName and
// vaNodeIDAnnotation.
const (
	// AttacherFinalizer keeps a VolumeAttachment until its volume is detached, and a
	// PersistentVolume while it has VolumeAttachments.
	AttacherFinalizer = "external-attacher/sim-setpoint-io"

	// nodeIDAnnotation of a VolumeAttachment has the driver's name of the Node, which a detach
	// needs when the Node is gone.
	nodeIDAnnotation = "csi.alpha.kubernetes.io/node-id"
)

// actionAttach is the action of Events about knobs that cannot be read.
const actionAttach = "Attach"

// attacher plays external-attacher: it attaches and detaches what VolumeAttachments of the driver
// ask for.
type attacher struct {
	attachments cache.SharedInformer[*storagev1.VolumeAttachment]
	volumes     cache.SharedInformer[*corev1.PersistentVolume]
	claims      cache.SharedInformer[*corev1.PersistentVolumeClaim]
	nodes       cache.SharedInformer[*corev1.Node]
	csiNodes    cache.SharedInformer[*storagev1.CSINode]
	ofVolume    cache.Index[*storagev1.VolumeAttachment]
	onNode      cache.Index[*storagev1.VolumeAttachment]
	recorder    *events.Recorder
	log         *slog.Logger
	now         func() time.Time
	attempts    attempts
	told        sync.Map // problems of the annotations, by the key of the VolumeAttachment
}

func newAttacher(p cache.Provider, recorder *events.Recorder, log *slog.Logger) *attacher {
	a := &attacher{
		attachments: cache.Informer[*storagev1.VolumeAttachment](p),
		volumes:     cache.Informer[*corev1.PersistentVolume](p),
		claims:      cache.Informer[*corev1.PersistentVolumeClaim](p),
		nodes:       cache.Informer[*corev1.Node](p),
		csiNodes:    cache.Informer[*storagev1.CSINode](p),
		recorder:    recorder, log: log, now: time.Now,
	}
	a.ofVolume = attachmentsByVolume(a.attachments)
	a.onNode = cache.NewIndex(a.attachments, func(item cache.Item[*storagev1.VolumeAttachment]) ([]string, error) {
		attachment, err := item.Object()
		if err != nil {
			return nil, err
		}
		return []string{attachment.Spec.NodeName}, nil
	})
	return a
}

// attachmentsIndex is the identity of the index of attachmentsByVolume.
type attachmentsIndex struct{}

// attachmentsByVolume returns the index of VolumeAttachments by the names of their
// PersistentVolumes.
func attachmentsByVolume(attachments cache.SharedInformer[*storagev1.VolumeAttachment]) cache.Index[*storagev1.VolumeAttachment] {
	return cache.SharedIndex(attachments, attachmentsIndex{}, func(item cache.Item[*storagev1.VolumeAttachment]) ([]string, error) {
		attachment, err := item.Object()
		if err != nil || attachment.Spec.Source.PersistentVolumeName == nil {
			return nil, err
		}
		return []string{*attachment.Spec.Source.PersistentVolumeName}, nil
	})
}

// loops returns what is to run: one loop for VolumeAttachments, and one for volumes that go.
func (a *attacher) loops() []controller.Runnable {
	return []controller.Runnable{
		controller.New("attacher", a.reconcile,
			controller.For(a.attachments),
			controller.Watches(a.volumes, a.attachmentsOfVolume, predicate.AnnotationsChanged[*corev1.PersistentVolume]),
			controller.Watches(a.claims, a.attachmentsOfClaim, predicate.AnnotationsChanged[*corev1.PersistentVolumeClaim]),
			controller.Watches(a.csiNodes, a.attachmentsOfNode),
			controller.Reads(a.nodes),
			controller.Workers(workers), controller.Log(a.log),
		),
		controller.New("attacher-volumes", a.reconcileVolume,
			controller.For(a.volumes),
			controller.Watches(a.attachments, volumeOfAttachment),
			controller.Workers(workers), controller.Log(a.log),
		),
	}
}

func (a *attacher) attachmentsOfVolume(item cache.Item[*corev1.PersistentVolume], add func(object.Key)) {
	for _, attachment := range a.ofVolume.Find(item.Key().Name) {
		add(attachment.Key())
	}
}

func (a *attacher) attachmentsOfClaim(item cache.Item[*corev1.PersistentVolumeClaim], add func(object.Key)) {
	claim, err := item.Object()
	if err != nil || claim.Spec.VolumeName == "" {
		return
	}
	for _, attachment := range a.ofVolume.Find(claim.Spec.VolumeName) {
		add(attachment.Key())
	}
}

func (a *attacher) attachmentsOfNode(item cache.Item[*storagev1.CSINode], add func(object.Key)) {
	for _, attachment := range a.onNode.Find(item.Key().Name) {
		add(attachment.Key())
	}
}

// reconcile brings one VolumeAttachment to what it asks for.
func (a *attacher) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	attachment, err := a.attachments.Get(req.Key)
	if apierrors.IsNotFound(err) {
		a.attempts.forget(req.Key, Attach, Detach)
		a.told.Delete(req.Key)
		return controller.Result{}, nil
	}
	if err != nil || attachment.Spec.Attacher != Driver {
		return controller.Result{}, err
	}
	switch {
	case attachment.DeletionTimestamp != nil:
		a.attempts.forget(req.Key, Attach)
		return a.detach(ctx, attachment)
	case attachment.Status.Attached:
		a.attempts.forget(req.Key, Attach)
		return controller.Result{}, nil
	}
	return a.attach(ctx, attachment)
}

// attach attaches a volume. As with external-attacher, the finalizers come first, so that neither
// the volume nor the VolumeAttachment can go unnoticed while the driver works.
func (a *attacher) attach(ctx context.Context, attachment *storagev1.VolumeAttachment) (controller.Result, error) {
	if a.expectsNode(attachment.Spec.NodeName) {
		return controller.Result{}, nil // its CSINode is an event
	}
	volume, nodeID, err := a.prepare(ctx, attachment)
	if apierrors.IsConflict(err) {
		return controller.Result{}, err // another client has changed the volume
	}
	k := a.knobs(Attach, attachment, volume)
	k.refused = err
	v := a.attempts.judge(object.KeyOf(attachment), attachment.UID, Attach, "", k, a.now())
	if err == nil {
		if attachment, err = a.keep(ctx, attachment, nodeID); err != nil {
			return controller.Result{}, err
		}
	}
	if v.err != nil {
		return controller.Result{After: v.wait}, a.writeError(ctx, attachment, Attach, v.err)
	}
	if !v.done {
		return controller.Result{After: v.wait}, nil
	}
	next := attachment.DeepCopy()
	next.Status.Attached, next.Status.AttachError = true, nil
	if _, err := a.attachments.UpdateStatus(ctx, next); err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("writing that the volume is attached: %w", err)
	}
	a.log.Debug("attached a volume", "attachment", attachment.Name, "node", attachment.Spec.NodeName)
	return controller.Result{}, nil
}

// detach detaches a volume. The status comes before the finalizer, after which the VolumeAttachment
// is gone.
func (a *attacher) detach(ctx context.Context, attachment *storagev1.VolumeAttachment) (controller.Result, error) {
	if !slices.Contains(attachment.Finalizers, AttacherFinalizer) {
		return controller.Result{}, nil // it was never attached, or is detached
	}
	volume, err := a.volumeOf(attachment)
	if err == nil {
		_, err = a.nodeID(attachment.Spec.NodeName, attachment)
	}
	k := a.knobs(Detach, attachment, volume)
	k.refused = err
	v := a.attempts.judge(object.KeyOf(attachment), attachment.UID, Detach, "", k, a.now())
	if v.err != nil {
		return controller.Result{After: v.wait}, a.writeError(ctx, attachment, Detach, v.err)
	}
	if !v.done {
		return controller.Result{After: v.wait}, nil
	}
	next := attachment.DeepCopy()
	next.Status.Attached, next.Status.DetachError, next.Status.AttachmentMetadata = false, nil, nil
	next, err = a.attachments.UpdateStatus(ctx, next)
	if err == nil {
		next.Finalizers = without(next.Finalizers, AttacherFinalizer)
		_, err = a.attachments.Update(ctx, next)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("writing that the volume is detached: %w", err)
	}
	a.log.Debug("detached a volume", "attachment", attachment.Name, "node", attachment.Spec.NodeName)
	return controller.Result{}, nil
}

// prepare returns what the driver needs for attaching: the volume, with the finalizer on it, and the
// driver's name of the Node.
func (a *attacher) prepare(ctx context.Context, attachment *storagev1.VolumeAttachment) (volume *corev1.PersistentVolume, nodeID string, err error) {
	volume, err = a.volumeOf(attachment)
	if err != nil {
		return volume, "", err
	}
	if volume != nil {
		if volume.DeletionTimestamp != nil {
			return volume, "", fmt.Errorf("PersistentVolume %q is marked for deletion", volume.Name)
		}
		if volume, err = a.keepVolume(ctx, volume); err != nil {
			return nil, "", err
		}
	}
	nodeID, err = a.nodeID(attachment.Spec.NodeName, nil)
	return volume, nodeID, err
}

// volumeOf returns the PersistentVolume of a VolumeAttachment, nil for a volume that stands in a
// Pod.
func (a *attacher) volumeOf(attachment *storagev1.VolumeAttachment) (*corev1.PersistentVolume, error) {
	source := attachment.Spec.Source
	if source.PersistentVolumeName == nil {
		if source.InlineVolumeSpec == nil || source.InlineVolumeSpec.CSI == nil {
			return nil, errors.New("the VolumeAttachment names neither a PersistentVolume nor a CSI volume")
		}
		return nil, nil
	}
	volume, err := a.volumes.Get(object.Key{Name: *source.PersistentVolumeName})
	if err != nil {
		return nil, err
	}
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != Driver {
		return volume, fmt.Errorf("PersistentVolume %q is not of the driver %s", volume.Name, Driver)
	}
	return volume, nil
}

// keep puts the finalizer and the driver's name of the Node on a VolumeAttachment.
func (a *attacher) keep(ctx context.Context, attachment *storagev1.VolumeAttachment, nodeID string) (*storagev1.VolumeAttachment, error) {
	if slices.Contains(attachment.Finalizers, AttacherFinalizer) && attachment.Annotations[nodeIDAnnotation] == nodeID {
		return attachment, nil
	}
	next := attachment.DeepCopy()
	if !slices.Contains(next.Finalizers, AttacherFinalizer) {
		next.Finalizers = append(next.Finalizers, AttacherFinalizer)
	}
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, nodeIDAnnotation, nodeID)
	kept, err := a.attachments.Update(ctx, next)
	if err != nil {
		return nil, fmt.Errorf("writing the finalizer of the attachment: %w", err)
	}
	return kept, nil
}

// writeError writes why an operation has failed into the status of the VolumeAttachment. The
// attach-detach controller tells the Pods that wait. An error that is there already keeps its time.
func (a *attacher) writeError(ctx context.Context, attachment *storagev1.VolumeAttachment, operation string, why error) error {
	next := attachment.DeepCopy()
	failure := &storagev1.VolumeError{Message: why.Error(), Time: metav1.NewTime(a.now())}
	before := next.Status.AttachError
	if operation == Detach {
		before = next.Status.DetachError
	}
	if before != nil && before.Message == failure.Message {
		return nil
	}
	if operation == Detach {
		next.Status.DetachError = failure
	} else {
		next.Status.AttachError = failure
	}
	if _, err := a.attachments.UpdateStatus(ctx, next); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing why the driver has failed to %s: %w", operation, err)
	}
	return nil
}

// knobs returns how an operation on the volume of a VolumeAttachment goes, as the annotations of
// the claim say, or those of the volume.
func (a *attacher) knobs(operation string, attachment *storagev1.VolumeAttachment, volume *corev1.PersistentVolume) knobs {
	if volume == nil {
		return knobs{answer: answerOK}
	}
	claim := a.claimOf(volume)
	var annotations map[string]string
	if claim != nil {
		annotations = claim.Annotations
	}
	k, problems := knobsOf(operation, annotations, volume.Annotations)
	text := strings.Join(problems, "\n")
	if last, _ := a.told.Swap(object.KeyOf(attachment), text); last != text {
		for _, problem := range problems {
			if claim != nil {
				a.recorder.Warning(claim, reasonInvalidKnob, actionAttach, "%s", problem)
			} else {
				a.recorder.Warning(volume, reasonInvalidKnob, actionAttach, "%s", problem)
			}
		}
	}
	return k
}

// claimOf returns the claim of a volume, or nil.
func (a *attacher) claimOf(volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	ref := volume.Spec.ClaimRef
	if ref == nil {
		return nil
	}
	claim, err := a.claims.Get(object.Key{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil || claim.UID != ref.UID {
		return nil
	}
	return claim
}

// without returns a list of finalizers without one of them.
func without(finalizers []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == one })
}
