// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/worlds"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/pace"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/wire"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "persistentvolume-attach-detach-controller"

// eventSource is whom Events name, which users filter by.
// Source: k8s.io/kubernetes/pkg/controller/volume/attachdetach.
const eventSource = "attachdetach-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many volumes, and how many nodes, are worked on at a time.
	Workers int

	// SyncPeriod is how often every volume is compared with its attachments although nothing has
	// changed. DisableSync turns that off.
	SyncPeriod  time.Duration
	DisableSync bool

	// DisableForceDetachOnTimeout keeps volumes at a node that is not ready and has them in use
	// until the node has the taint node.kubernetes.io/out-of-service.
	DisableForceDetachOnTimeout bool

	// UnmountWait is how long the kubelet of a node that is not ready may take to unmount a volume
	// before the volume is detached by force.
	UnmountWait time.Duration

	// OperationLimit is how long a driver may take to attach a volume before that counts as
	// failed. It may still succeed later.
	OperationLimit time.Duration
}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"persistentvolumes", "persistentvolumeclaims", "pods"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{storagev1.GroupName}, Resources: []string{"volumeattachments"}, Verbs: []string{"get", "list", "watch", "create", "delete"}},
		{APIGroups: []string{storagev1.GroupName}, Resources: []string{"csidrivers"}, Verbs: []string{"list", "watch"}},
		events.Rights(),
	}
}

// spot is a volume at a node.
type spot struct {
	volume corev1.UniqueVolumeName
	node   string
}

// String names the spot on debug pages.
func (s spot) String() string { return fmt.Sprintf("%s at %s", s.volume, s.node) }

type reconciler struct {
	options Options

	pods        cache.SharedInformer[*corev1.Pod]
	claims      cache.SharedInformer[*corev1.PersistentVolumeClaim]
	pvs         cache.SharedInformer[*corev1.PersistentVolume]
	nodes       cache.SharedInformer[*corev1.Node]
	attachments cache.SharedInformer[*storagev1.VolumeAttachment]
	drivers     cache.SharedInformer[*storagev1.CSIDriver]

	podsOfClaim   cache.Index[*corev1.Pod]
	claimsOfPV    cache.Index[*corev1.PersistentVolumeClaim] // by the name of their volume
	podsOfInline  cache.Index[*corev1.Pod]                   // by the unique name of a volume that stands in the Pod
	podsOnNode    cache.Index[*corev1.Pod]
	pvsOfVolume   cache.Index[*corev1.PersistentVolume] // by unique name
	nodesOfVolume cache.Index[*corev1.Node]             // by the unique names in the status
	attachmentsOf cache.Index[*storagev1.VolumeAttachment]
	attachmentsOn cache.Index[*storagev1.VolumeAttachment] // by node
	attachedOn    cache.Index[*storagev1.VolumeAttachment] // by node, those that are attached and stay
	world         *worlds.World[spot, memory]
	spots         spots             // that the world remembers
	reports       pace.Pace[string] // into the status of Nodes
	forced        forcedDetaches
	durations     *prometheus.HistogramVec
	recorder      *events.Recorder
	log           *slog.Logger
	attendVolume  func(corev1.UniqueVolumeName)
	attendNode    func(string)
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		options:     o,
		pods:        cache.Informer[*corev1.Pod](h),
		claims:      cache.Informer[*corev1.PersistentVolumeClaim](h),
		pvs:         cache.Informer[*corev1.PersistentVolume](h),
		nodes:       cache.Informer[*corev1.Node](h),
		attachments: cache.Informer[*storagev1.VolumeAttachment](h),
		drivers:     cache.Informer[*storagev1.CSIDriver](h),
		reports:     pace.Pace[string]{Pause: reportPause},
		world:       worlds.New[spot, memory](worlds.Options{}),
		recorder:    h.Recorder(eventSource),
		log:         h.Logger().With("controller", Name),
		durations:   newDurations(),
	}
	r.index()

	ofVolumes := controller.NewKeyed(Name, r.reconcile,
		controller.Watches(r.pods, r.volumesOfPod, podMatters),
		controller.Watches(r.claims, r.volumesOfClaim, claimMatters),
		controller.Watches(r.pvs, r.volumesOfPV, pvMatters),
		controller.Watches(r.attachments, r.volumesOfAttachment),
		controller.Watches(r.nodes, r.volumesAtNode, nodeMatters),
		controller.Watches(r.nodes, r.volumesThatLeave, inUseMatters),
		controller.Watches(r.drivers, r.volumesOfDriver),
		controller.Workers(o.Workers),
		controller.Shows("operations", r.world.Lines),
	)
	if !o.DisableSync {
		ofVolumes.Feed("the sync of all volumes", r.everyVolume)
	}
	ofNodes := controller.NewKeyed(Name+"-nodes", r.report,
		controller.Watches(r.nodes, nodeItself, attachedMatters),
		controller.Watches(r.attachments, nodeOfAttachment, attachmentMatters),
		controller.Reads(r.pvs),
		controller.Workers(min(reportWorkers, o.Workers)),
	)
	volumeQueue, nodeQueue := ofVolumes.Queue(), ofNodes.Queue()
	r.attendVolume = func(volume corev1.UniqueVolumeName) { volumeQueue.AddWith(enqueuedBy(ofNodes.Name()), volume) }
	r.attendNode = func(node string) { nodeQueue.AddWith(enqueuedBy(ofVolumes.Name()), node) }
	joined, ok := controller.Join(Name, ofVolumes, ofNodes).(loops)
	if !ok {
		return nil, fmt.Errorf("making %s: the loops cannot be joined", Name)
	}
	return &Controller{joined, r}, nil
}

func (o Options) check() error {
	if o.SyncPeriod < time.Second {
		return fmt.Errorf("a sync period of %s; want a second or more", o.SyncPeriod)
	}
	if o.UnmountWait <= 0 || o.OperationLimit <= 0 {
		return fmt.Errorf("a wait for unmounting of %s and a limit of operations of %s; want more than 0", o.UnmountWait, o.OperationLimit)
	}
	return controllers.CheckWorkers(o.Workers)
}

// index makes the indexes that the reconciler finds objects by.
func (r *reconciler) index() {
	r.podsOfClaim = volumes.PodsByClaim(r.pods)
	r.claimsOfPV = cache.NewIndex(r.claims, nameOfPV)
	r.podsOfInline = cache.NewIndex(r.pods, inlineVolumes)
	r.podsOnNode = cache.TextIndex(r.pods, wire.NodeName)
	r.pvsOfVolume = cache.NewIndex(r.pvs, uniqueNames)
	r.nodesOfVolume = cache.NewIndex(r.nodes, namedVolumes)
	r.attachmentsOf = cache.NewIndex(r.attachments, sourceOfAttachment)
	r.attachmentsOn = cache.NewIndex(r.attachments, nodesOfAttachment)
	r.attachedOn = cache.NewIndex(r.attachments, nodesOfAttached)
}
