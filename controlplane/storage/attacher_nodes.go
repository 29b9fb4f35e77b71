// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controlplane/nodes"
	"github.com/setpoint-io/setpoint/object"
)

// AttachLimit is the annotation of a Node that says how many volumes of the driver may be attached
// to it. The scheduler heeds the number. Without it there is no limit.
const AttachLimit = Prefix + "attach-limit"

// publisher keeps one CSINode for each simulated Node: it says that the driver is there.
type publisher struct {
	nodes    cache.SharedInformer[*corev1.Node]
	csiNodes cache.SharedInformer[*storagev1.CSINode]
	recorder *events.Recorder
	log      *slog.Logger
	told     sync.Map // the problem of a Node's annotation that was reported, by the Node's key
}

func newPublisher(p cache.Provider, recorder *events.Recorder, log *slog.Logger) *publisher {
	return &publisher{
		nodes:    cache.Informer[*corev1.Node](p),
		csiNodes: cache.Informer[*storagev1.CSINode](p),
		recorder: recorder,
		log:      log,
	}
}

// loop returns what is to run. The heartbeats of a Node start no run.
func (p *publisher) loop() controller.Runnable {
	return controller.New("csinode-publisher", p.reconcile,
		controller.For(p.nodes, predicate.Either(predicate.LabelsChanged[*corev1.Node], predicate.AnnotationsChanged[*corev1.Node])),
		controller.Watches(p.csiNodes, func(item cache.Item[*storagev1.CSINode], add func(object.Key)) { add(item.Key()) }),
		controller.Workers(workers), controller.Log(p.log),
	)
}

// How often caughtUp looks into the caches, and how long at most.
const (
	catchUpInterval = 20 * time.Millisecond
	catchUpLimit    = 10 * time.Second
)

// caughtUp waits until each simulated Node has its CSINode, so that a cluster that is ready does not
// change any more by itself. A CSINode that cannot be created delays that for a limited time. It
// reports false if ctx has ended.
func (p *publisher) caughtUp(ctx context.Context) bool {
	if p.nodes.WaitForSync(ctx) != nil || p.csiNodes.WaitForSync(ctx) != nil {
		return false
	}
	for end := time.Now().Add(catchUpLimit); !p.complete() && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(catchUpInterval):
		}
	}
	return true
}

// complete reports whether each simulated Node has a CSINode.
func (p *publisher) complete() bool {
	for key, item := range p.nodes.All() {
		node, err := item.Object()
		if err != nil || !isSimulated(node) {
			continue
		}
		if _, err := p.csiNodes.Get(key); err != nil {
			return false
		}
	}
	return true
}

// isSimulated reports whether a Node is one of the simulation.
func isSimulated(node *corev1.Node) bool { return node.Labels[nodes.ManagedLabel] == "true" }

// reconcile brings the CSINode of one Node to what it is to be.
func (p *publisher) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	node, err := p.nodes.Get(req.Key)
	if apierrors.IsNotFound(err) {
		p.told.Delete(req.Key)
		return controller.Result{}, p.withdraw(ctx, req.Key)
	}
	if err != nil || !isSimulated(node) || node.DeletionTimestamp != nil {
		return controller.Result{}, err
	}
	limit, problem := limitOfNode(node)
	if last, _ := p.told.Swap(req.Key, problem); problem != "" && last != problem {
		p.recorder.Warning(node, reasonInvalidKnob, actionAttach, "%s", problem)
	}
	want := csiNodeOf(node, limit)
	has, err := p.csiNodes.Get(req.Key)
	if apierrors.IsNotFound(err) {
		if _, err := p.csiNodes.Create(ctx, want); err != nil {
			return controller.Result{}, fmt.Errorf("creating the CSINode of the node: %w", err)
		}
		return controller.Result{}, nil
	}
	if err != nil || has.DeletionTimestamp != nil {
		return controller.Result{}, err // its end is an event
	}
	if apiequality.Semantic.DeepEqual(has.Spec, want.Spec) && apiequality.Semantic.DeepEqual(has.OwnerReferences, want.OwnerReferences) {
		return controller.Result{}, nil
	}
	next := has.DeepCopy()
	next.Spec, next.OwnerReferences = want.Spec, want.OwnerReferences
	if _, err := p.csiNodes.Update(ctx, next); err != nil {
		return controller.Result{}, fmt.Errorf("writing the CSINode of the node: %w", err)
	}
	return controller.Result{}, nil
}

// withdraw deletes the CSINode of a Node that is gone. The garbage collector would, but a cluster
// may run without it.
func (p *publisher) withdraw(ctx context.Context, key object.Key) error {
	has, err := p.csiNodes.Get(key)
	if err == nil && has.DeletionTimestamp == nil && len(has.Spec.Drivers) == 1 && has.Spec.Drivers[0].Name == Driver {
		err = p.csiNodes.Delete(ctx, key, client.IfUID(has.UID))
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting the CSINode of a node that is gone: %w", err)
	}
	return nil
}

// limitOfNode returns how many volumes may be attached to a Node, nil for any number, and what is
// wrong with the annotation if it cannot be read.
func limitOfNode(node *corev1.Node) (limit *storagev1.VolumeNodeResources, problem string) {
	text, ok := node.Annotations[AttachLimit]
	if !ok {
		return nil, ""
	}
	count, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return nil, fmt.Sprintf("annotation %s is ignored: %q is not a number of volumes", AttachLimit, text)
	}
	return &storagev1.VolumeNodeResources{Count: new(int32(count))}, ""
}

// csiNodeOf returns the CSINode of a simulated Node.
func csiNodeOf(node *corev1.Node, limit *storagev1.VolumeNodeResources) *storagev1.CSINode {
	driver := storagev1.CSINodeDriver{
		Name: Driver, NodeID: node.Name, Allocatable: limit,
		TopologyKeys: []string{corev1.LabelHostname, corev1.LabelTopologyZone},
	}
	return &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{
			Name:            node.Name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
		},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{driver}},
	}
}

// expectsNode reports whether a Node is simulated and has no CSINode yet, which the publisher is
// about to make.
func (a *attacher) expectsNode(name string) bool {
	if _, err := a.nodeID(name, nil); err == nil {
		return false
	}
	node, err := a.nodes.Get(object.Key{Name: name})
	return err == nil && isSimulated(node) && node.DeletionTimestamp == nil
}

// nodeID returns the driver's name of a Node, as its CSINode has it, or else the VolumeAttachment,
// if one is given.
func (a *attacher) nodeID(name string, attachment *storagev1.VolumeAttachment) (string, error) {
	csiNode, err := a.csiNodes.Get(object.Key{Name: name})
	if err == nil {
		for i := range csiNode.Spec.Drivers {
			if csiNode.Spec.Drivers[i].Name == Driver {
				return csiNode.Spec.Drivers[i].NodeID, nil
			}
		}
		err = fmt.Errorf("CSINode %s does not contain driver %s", name, Driver)
	}
	if attachment != nil {
		if id, ok := attachment.Annotations[nodeIDAnnotation]; ok {
			return id, nil
		}
	}
	return "", err
}
