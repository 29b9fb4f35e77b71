// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "persistentvolume-binder-controller"

// eventSource is whom Events name, which users filter by.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume.
const eventSource = "persistentvolume-controller"

// How many claims and volumes are worked on at a time. Each of the four writes of a binding waits
// for the one before, so that one worker alone, as in kube-controller-manager, binds some thirty
// claims a second.
const workers = 32

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// SyncPeriod is the time until a claim or a volume that waits is reconciled again, and until
	// its Event is repeated; each further time is twice as long. Less than a second is a second.
	SyncPeriod time.Duration

	// Provisioning has volumes made for claims that no free volume fits.
	Provisioning bool

	// HostPath makes and deletes directories of this machine as volumes, for tests on a single
	// Node.
	HostPath bool

	// RecycleHostPath and RecycleNFS say how volumes of the plugins are made empty.
	RecycleHostPath, RecycleNFS Recycler
}

// kinds are what claims and volumes are.
var (
	claimKind  = object.Resource{Version: "v1", Plural: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true}
	volumeKind = object.Resource{Version: "v1", Plural: "persistentvolumes", Kind: "PersistentVolume"}
)

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "list", "watch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumes/status", "persistentvolumeclaims/status"}, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "create", "delete"}},
		{APIGroups: []string{storagev1.GroupName}, Resources: []string{"storageclasses"}, Verbs: []string{"get", "list", "watch"}},
		events.Rights(),
	}
}

// binder is what both loops share.
type binder struct {
	Options
	claims    cache.SharedInformer[*corev1.PersistentVolumeClaim]
	volumes   cache.SharedInformer[*corev1.PersistentVolume]
	classes   cache.SharedInformer[*storagev1.StorageClass]
	pods      cache.SharedInformer[*corev1.Pod]
	recorder  *events.Recorder
	log       *slog.Logger
	now       func() time.Time
	pools     pools
	reminders *reminders
	metrics   *binderMetrics
	recycles  sync.Map // by UID of the volume: when its next recycler Pod may start

	referring cache.Index[*corev1.PersistentVolume]      // by the claim that they refer to
	free      cache.Index[*corev1.PersistentVolume]      // by class
	naming    cache.Index[*corev1.PersistentVolumeClaim] // by the volume that they name
	waiting   cache.Index[*corev1.PersistentVolumeClaim] // by class
	users     cache.Index[*corev1.Pod]                   // by claim

	claimLoop, volumeLoop *controller.Controller
}

// unclassed is the value of the index waiting for claims that do not say of which class they are.
// No class has such a name.
const unclassed = "(unset)"

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	_, made, err := build(h, o)
	return made, err
}

func build(h controller.Host, o Options) (*binder, controller.Runnable, error) {
	for _, r := range []*Recycler{&o.RecycleHostPath, &o.RecycleNFS} {
		if err := r.load(); err != nil {
			return nil, nil, fmt.Errorf("making %s: %w", Name, err)
		}
	}
	o.SyncPeriod = max(o.SyncPeriod, time.Second)
	b := &binder{
		Options:   o,
		claims:    cache.Informer[*corev1.PersistentVolumeClaim](h),
		volumes:   cache.Informer[*corev1.PersistentVolume](h),
		classes:   cache.Informer[*storagev1.StorageClass](h),
		pods:      cache.Informer[*corev1.Pod](h).With(client.MetadataAnswer()),
		recorder:  h.Recorder(eventSource),
		log:       h.Logger().With("controller", Name),
		now:       time.Now,
		reminders: newReminders(o.SyncPeriod),
		metrics:   newBinderMetrics(),
	}
	b.index()
	b.count()
	b.claimLoop = controller.New(Name, b.reconcileClaim,
		controller.For(b.claims),
		controller.Watches(b.volumes, b.claimsOfVolume),
		controller.Watches(b.classes, b.claimsOfClass),
		controller.Watches(b.pods, b.claimsOfPod, movesToNode),
		controller.Workers(workers), controller.Fair(),
	)
	b.volumeLoop = controller.New(Name+"-volumes", b.reconcileVolume,
		controller.For(b.volumes),
		controller.Watches(b.claims, b.volumesOfClaim, letsGo),
		controller.Watches(b.pods, b.volumeOfRecycler),
		controller.Workers(workers),
	)
	return b, b.metrics.Of(controller.Join(Name, b.claimLoop, b.volumeLoop)), nil
}

// index adds the indexes.
func (b *binder) index() {
	b.referring = cache.NewIndex(b.volumes, func(item cache.Item[*corev1.PersistentVolume]) ([]string, error) {
		volume, err := item.Object()
		if err != nil || volume.Spec.ClaimRef == nil {
			return nil, err
		}
		return []string{claimOf(volume).String()}, nil
	})
	b.free = cache.NewIndex(b.volumes, func(item cache.Item[*corev1.PersistentVolume]) ([]string, error) {
		volume, err := item.Object()
		if err != nil || !isFree(volume) {
			return nil, err
		}
		return []string{volumes.ClassOfVolume(volume)}, nil
	})
	b.naming = cache.NewIndex(b.claims, func(item cache.Item[*corev1.PersistentVolumeClaim]) ([]string, error) {
		claim, err := item.Object()
		if err != nil || claim.Spec.VolumeName == "" {
			return nil, err
		}
		return []string{claim.Spec.VolumeName}, nil
	})
	b.waiting = cache.NewIndex(b.claims, func(item cache.Item[*corev1.PersistentVolumeClaim]) ([]string, error) {
		claim, err := item.Object()
		if err != nil || !isWaiting(claim) {
			return nil, err
		}
		values := []string{volumes.ClassOf(claim)}
		if !volumes.HasClass(claim) {
			values = append(values, unclassed)
		}
		return values, nil
	})
	b.users = volumes.PodsByClaim(b.pods)
}

// claimOf returns the key of the claim that a volume refers to.
func claimOf(volume *corev1.PersistentVolume) object.Key {
	return object.Key{Namespace: volume.Spec.ClaimRef.Namespace, Name: volume.Spec.ClaimRef.Name}
}

// claimsOfVolume adds the claim that a volume refers to, and those that name the volume.
func (b *binder) claimsOfVolume(item cache.Item[*corev1.PersistentVolume], add func(object.Key)) {
	volume, err := item.Object()
	if err != nil {
		return // the indexes have logged it
	}
	if volume.Spec.ClaimRef != nil {
		add(claimOf(volume))
	}
	for key := range b.naming.Find(volume.Name) {
		add(key)
	}
}

// claimsOfClass adds the claims that wait and are of a class, or that may get it.
func (b *binder) claimsOfClass(item cache.Item[*storagev1.StorageClass], add func(object.Key)) {
	for key := range b.waiting.Find(item.Key().Name) {
		add(key)
	}
	if class, err := item.Object(); err == nil && volumes.IsDefault(class) {
		for key := range b.waiting.Find(unclassed) {
			add(key)
		}
	}
}

// claimsOfPod adds the claims of a Pod that wait.
func (b *binder) claimsOfPod(item cache.Item[*corev1.Pod], add func(object.Key)) {
	claims := b.claims.Snapshot()
	_ = volumes.ClaimKeys(item, func(key object.Key) { // the index has logged a Pod that cannot be decoded
		if claim := claims.Get(key); claim.Exists() {
			if c, err := claim.Object(); err == nil && isWaiting(c) {
				add(key)
			}
		}
	})
}

// movesToNode chooses the events of Pods that appear, get a Node, or go.
func movesToNode(e cache.Event[*corev1.Pod]) bool {
	if e.Kind != cache.Updated {
		return true
	}
	before, err := e.Old.Text(wire.NodeName)
	if err != nil {
		return true
	}
	after, err := e.New.Text(wire.NodeName)
	return err != nil || before != after
}

// volumesOfClaim adds the volumes that refer to a claim, and the one that it names, which may not refer to it yet.
func (b *binder) volumesOfClaim(item cache.Item[*corev1.PersistentVolumeClaim], add func(object.Key)) {
	for key := range b.referring.Find(item.Key().String()) {
		add(key)
	}
	if claim, err := item.Object(); err == nil && claim.Spec.VolumeName != "" { // the indexes have logged an error
		add(object.Key{Name: claim.Spec.VolumeName})
	}
}

// letsGo chooses the events of claims after which a volume may be free: the claim goes, or it
// names another volume.
func letsGo(e cache.Event[*corev1.PersistentVolumeClaim]) bool {
	if e.Kind != cache.Updated {
		return e.Kind != cache.Added
	}
	before, err := e.Old.Object()
	if err != nil {
		return true
	}
	after, err := e.New.Object()
	return err != nil || before.Spec.VolumeName != after.Spec.VolumeName
}
