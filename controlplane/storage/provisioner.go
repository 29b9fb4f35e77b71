// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
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
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// Reasons of Events, and what was being done.
// Source: sigs.k8s.io/sig-storage-lib-external-provisioner and external-resizer.
const (
	reasonProvisioning = "Provisioning"
	reasonProvisioned  = "ProvisioningSucceeded"
	reasonNotMade      = "ProvisioningFailed"
	reasonNotDeleted   = "VolumeFailedDelete"
	reasonResizing     = "Resizing"
	reasonResized      = "VolumeResizeSuccessful"
	reasonNotResized   = "VolumeResizeFailed"
	reasonModifying    = "VolumeModify"
	reasonModified     = "VolumeModifySuccessful"
	reasonNotModified  = "VolumeModifyFailed"
	reasonInvalidKnob  = "InvalidSimulation"
	actionProvision    = "Provision"
	actionDelete       = "Delete"
	actionResize       = "Resize"
	actionModify       = "Modify"
)

// provisioner makes, changes and deletes volumes.
type provisioner struct {
	claims      cache.SharedInformer[*corev1.PersistentVolumeClaim]
	volumes     cache.SharedInformer[*corev1.PersistentVolume]
	classes     cache.SharedInformer[*storagev1.StorageClass]
	attributes  cache.SharedInformer[*storagev1.VolumeAttributesClass]
	attachments cache.SharedInformer[*storagev1.VolumeAttachment]
	nodes       cache.SharedInformer[*corev1.Node]
	attached    cache.Index[*storagev1.VolumeAttachment] // by volume
	recorder    *events.Recorder
	log         *slog.Logger
	now         func() time.Time
	attempts    attempts
	told        sync.Map // problems of the annotations of a claim, by its key

	mu       sync.Mutex
	reserved map[string]int64 // bytes of volumes that were created and that the cache may not have
}

func newProvisioner(p cache.Provider, recorder *events.Recorder, log *slog.Logger) *provisioner {
	s := &provisioner{
		claims:      cache.Informer[*corev1.PersistentVolumeClaim](p),
		volumes:     cache.Informer[*corev1.PersistentVolume](p),
		classes:     cache.Informer[*storagev1.StorageClass](p),
		attributes:  cache.Informer[*storagev1.VolumeAttributesClass](p),
		attachments: cache.Informer[*storagev1.VolumeAttachment](p),
		nodes:       cache.Informer[*corev1.Node](p),
		recorder:    recorder, log: log, now: time.Now,
		reserved: map[string]int64{},
	}
	s.attached = attachmentsByVolume(s.attachments)
	return s
}

// loops returns what is to run: one loop for claims, and one for volumes that go.
func (s *provisioner) loops() []controller.Runnable {
	claims := controller.New("provisioner", s.reconcileClaim,
		controller.For(s.claims),
		controller.Reads(s.volumes), controller.Reads(s.classes), controller.Reads(s.nodes),
		controller.Watches(s.attributes, s.claimsOfAttributes),
		controller.Workers(workers), controller.Log(s.log),
	)
	deletions := controller.New("deleter", s.reconcileVolume,
		controller.For(s.volumes, predicate.Stays),
		controller.Watches(s.attachments, volumeOfAttachment),
		controller.Workers(workers), controller.Log(s.log),
	)
	return []controller.Runnable{claims, deletions}
}

// claimsOfAttributes adds the claims that wait for a VolumeAttributesClass.
func (s *provisioner) claimsOfAttributes(item cache.Item[*storagev1.VolumeAttributesClass], add func(object.Key)) {
	for key, claim := range s.claims.All() {
		if c, err := claim.Object(); err == nil && volumes.AttributesOf(c.Spec.VolumeAttributesClassName) == item.Key().Name && modifies(c) {
			add(key)
		}
	}
}

// reconcileClaim makes the volume of one claim, or changes it.
func (s *provisioner) reconcileClaim(ctx context.Context, req controller.Request) (controller.Result, error) {
	claim, err := s.claims.Get(req.Key)
	if apierrors.IsNotFound(err) {
		s.attempts.forget(req.Key, Provision, Resize, Modify)
		s.told.Delete(req.Key)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if claim.Spec.VolumeName != "" {
		s.attempts.forget(req.Key, Provision)
		return s.change(ctx, claim)
	}
	if claim.Annotations[volumes.StorageProvisioner] != Driver || claim.DeletionTimestamp != nil {
		return controller.Result{}, nil
	}
	return s.provision(ctx, claim)
}

// provision makes the volume of a claim that a controller manager asks for.
func (s *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) (controller.Result, error) {
	name := volumes.NameFor(string(claim.UID))
	if _, err := s.volumes.Get(object.Key{Name: name}); err == nil {
		return controller.Result{}, nil // it waits for being bound
	}
	class, err := s.classes.Get(object.Key{Name: volumes.ClassOf(claim)})
	if err != nil {
		s.recorder.Warning(claim, reasonNotMade, actionProvision, "Error getting claim's StorageClass's fields: %v", err)
		return controller.Result{After: firstRetry}, nil
	}
	node := claim.Annotations[volumes.SelectedNode]
	if volumes.WaitsForConsumer(class) && node == "" {
		return controller.Result{}, nil // the scheduler has not chosen a Node
	}
	k, problems := knobsOf(Provision, claim.Annotations, class.Parameters)
	s.complain(claim, append(problems, unknown(claim.Annotations)...))
	v := s.attempts.judge(object.KeyOf(claim), claim.UID, Provision, node, k, s.now())
	if v.first {
		s.recorder.Normal(claim, reasonProvisioning, actionProvision, "External provisioner is provisioning volume for claim %q", object.KeyOf(claim))
	}
	switch {
	case v.err != nil:
		s.recorder.Warning(claim, reasonNotMade, actionProvision, "failed to provision volume with StorageClass %q: %v", class.Name, v.err)
		return controller.Result{After: v.wait}, nil //nolint:nilerr // an Event has the failure that the knobs ask for, which is none of the loop
	case !v.done:
		return controller.Result{After: v.wait}, nil
	}
	affinity, err := s.affinity(class, node)
	if err == nil {
		err = s.reserve(class, name, claim.Spec.Resources.Requests.Storage().Value())
	}
	if err != nil {
		return s.refuse(ctx, claim, class, err)
	}
	if _, err := s.volumes.Create(ctx, volumeFor(claim, class, affinity)); err != nil && !apierrors.IsAlreadyExists(err) {
		s.free(name)
		return controller.Result{}, fmt.Errorf("creating volume %s: %w", name, err)
	}
	s.recorder.Normal(claim, reasonProvisioned, actionProvision, "Successfully provisioned volume %s", name)
	return controller.Result{}, nil
}

// refuse says that a volume cannot be made as it is wanted. The scheduler may find another Node.
func (s *provisioner) refuse(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, why error) (controller.Result, error) {
	s.recorder.Warning(claim, reasonNotMade, actionProvision, "failed to provision volume with StorageClass %q: %v", class.Name, why)
	wait := s.attempts.refuse(object.KeyOf(claim), Provision, s.now())
	if claim.Annotations[volumes.SelectedNode] != "" {
		next := claim.DeepCopy()
		delete(next.Annotations, volumes.SelectedNode)
		if _, err := s.claims.Update(ctx, next); err != nil {
			return controller.Result{}, fmt.Errorf("removing the selected node of the claim: %w", err)
		}
	}
	return controller.Result{After: wait}, nil
}

// complain records the problems of the annotations of a claim, once.
func (s *provisioner) complain(claim *corev1.PersistentVolumeClaim, problems []string) {
	text := fmt.Sprint(problems)
	if last, known := s.told.Swap(object.KeyOf(claim), text); !known || last != text {
		for _, problem := range problems {
			s.recorder.Warning(claim, reasonInvalidKnob, actionProvision, "%s", problem)
		}
	}
}

// volumeFor returns the volume of a claim.
func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, affinity *corev1.VolumeNodeAffinity) *corev1.PersistentVolume {
	name := volumes.NameFor(string(claim.UID))
	annotations := inherited(claim.Annotations, class.Parameters)
	annotations[volumes.ProvisionedBy] = Driver
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes,
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: *claim.Spec.Resources.Requests.Storage()},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name,
				UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			MountOptions:                  class.MountOptions,
			NodeAffinity:                  affinity,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: Driver, VolumeHandle: name, VolumeAttributes: map[string]string{"simulated": "true"},
			}},
			StorageClassName:          class.Name,
			VolumeMode:                claim.Spec.VolumeMode,
			VolumeAttributesClassName: claim.Spec.VolumeAttributesClassName,
		},
	}
	if class.ReclaimPolicy != nil {
		volume.Spec.PersistentVolumeReclaimPolicy = *class.ReclaimPolicy
	}
	if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		volume.Finalizers = []string{volumes.ExternalFinalizer}
	}
	return volume
}

// affinity returns from which Nodes a volume can be reached, as the class has it; nil is all.
func (s *provisioner) affinity(class *storagev1.StorageClass, nodeName string) (*corev1.VolumeNodeAffinity, error) {
	var label string
	switch topology := class.Parameters[topologyParameter]; topology {
	case "":
		return nil, nil
	case "zone":
		label = corev1.LabelTopologyZone
	case "node":
		label = corev1.LabelHostname
	default:
		return nil, fmt.Errorf("parameter %s of the storage class: %q is not \"zone\" or \"node\"", topologyParameter, topology)
	}
	if nodeName == "" {
		return nil, nil // a volume that is made at once is for all Nodes
	}
	node, err := s.nodes.Get(object.Key{Name: nodeName})
	if err != nil {
		return nil, fmt.Errorf("reading the selected node: %w", err)
	}
	value, ok := node.Labels[label]
	if !ok {
		return nil, fmt.Errorf("node %s has no label %s", nodeName, label)
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
	}}}}, nil
}

// reserve takes the bytes of a volume from the capacity of its class, if that has one.
func (s *provisioner) reserve(class *storagev1.StorageClass, name string, bytes int64) error {
	limit, err := limitOf(class.Parameters)
	if err != nil || limit == 0 {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	used := int64(0)
	sizes := maps.Clone(s.reserved)
	for key, item := range s.volumes.All() {
		volume, err := item.Object()
		if err != nil {
			return err
		}
		if volume.Annotations[volumes.ProvisionedBy] == Driver && volumes.ClassOfVolume(volume) == class.Name {
			used += volume.Spec.Capacity.Storage().Value()
		}
		delete(sizes, key.Name)
		delete(s.reserved, key.Name)
	}
	for _, size := range sizes {
		used += size
	}
	if used+bytes > limit {
		return fmt.Errorf("rpc error: code = ResourceExhausted desc = simulated: %d of %d bytes of the storage class are used, and the claim wants %d", used, limit, bytes)
	}
	s.reserved[name] = bytes
	return nil
}

// free gives back what reserve took.
func (s *provisioner) free(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reserved, name)
}
