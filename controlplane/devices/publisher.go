// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/object"
)

// The Event about an annotation that cannot be read.
const (
	reasonInvalid = "InvalidSimulation"
	actionPublish = "Publish"
)

// workers is how many Nodes the publisher works on at a time.
const workers = 16

// publisher keeps one ResourceSlice for each simulated Node.
type publisher struct {
	nodes    cache.SharedInformer[*corev1.Node]
	slices   cache.SharedInformer[*resourcev1.ResourceSlice]
	recorder *events.Recorder
	log      *slog.Logger
	told     sync.Map // the problems of a Node's annotation that were reported, by the Node's key
}

func newPublisher(p cache.Provider, recorder *events.Recorder, log *slog.Logger) *publisher {
	return &publisher{
		nodes:    cache.Informer[*corev1.Node](p),
		slices:   cache.Informer[*resourcev1.ResourceSlice](p),
		recorder: recorder,
		log:      log,
	}
}

// loop returns what is to run. The heartbeats of a Node start no run.
func (p *publisher) loop() controller.Runnable {
	return controller.New("device-publisher", p.reconcile,
		controller.For(p.nodes, predicate.Either(predicate.LabelsChanged[*corev1.Node], predicate.AnnotationsChanged[*corev1.Node])),
		controller.Watches(p.slices, nodeOfSlice),
		controller.Workers(workers), controller.Log(p.log),
	)
}

// nodeOfSlice adds the Node of a slice of the driver.
func nodeOfSlice(item cache.Item[*resourcev1.ResourceSlice], add func(object.Key)) {
	if node, ours := strings.CutSuffix(item.Key().Name, "-"+Driver); ours {
		add(object.Key{Name: node})
	}
}

// reconcile brings the slice of one Node to what it is to be.
func (p *publisher) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	node, err := p.nodes.Get(req.Key)
	switch {
	case apierrors.IsNotFound(err):
		p.told.Delete(req.Key)
		return controller.Result{}, p.withdraw(ctx, req.Key.Name)
	case err != nil:
		return controller.Result{}, err
	case !simulated(node):
		return controller.Result{}, p.withdraw(ctx, node.Name)
	case node.DeletionTimestamp != nil:
		return controller.Result{}, nil
	}
	with := inventory()
	p.complain(node, taint(with, node.Annotations[TaintAnnotation]))
	return controller.Result{}, p.publish(ctx, node, with)
}

// publish writes the slice of a Node if it differs. Each write begins a new generation of the pool.
func (p *publisher) publish(ctx context.Context, node *corev1.Node, with []resourcev1.Device) error {
	slice, err := p.slices.Get(object.Key{Name: sliceName(node.Name)})
	if apierrors.IsNotFound(err) {
		if _, err := p.slices.Create(ctx, newSlice(node, with)); err != nil {
			return fmt.Errorf("creating the ResourceSlice of the node: %w", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if slice.DeletionTimestamp != nil {
		return nil // its end is an event
	}
	keepTimes(with, slice.Spec.Devices)
	owners := []metav1.OwnerReference{ownedBy(node)}
	if apiequality.Semantic.DeepEqual(slice.Spec.Devices, with) && apiequality.Semantic.DeepEqual(slice.OwnerReferences, owners) {
		return nil
	}
	next := slice.DeepCopy()
	next.OwnerReferences, next.Spec.Devices = owners, with
	next.Spec.Pool.Generation++
	if _, err := p.slices.Update(ctx, next); err != nil {
		return fmt.Errorf("writing the ResourceSlice of the node: %w", err)
	}
	return nil
}

// withdraw deletes the slice of a Node that is gone. The garbage collector would, but a cluster may
// run without it.
func (p *publisher) withdraw(ctx context.Context, node string) error {
	slice, err := p.slices.Get(object.Key{Name: sliceName(node)})
	if err == nil && slice.Spec.Driver == Driver && slice.DeletionTimestamp == nil {
		err = p.slices.Delete(ctx, object.KeyOf(slice), client.IfUID(slice.UID))
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting the ResourceSlice of a node that is gone: %w", err)
	}
	return nil
}

// complain reports what is wrong with the annotation of a Node, once.
func (p *publisher) complain(node *corev1.Node, problems []string) {
	all := strings.Join(problems, "\n")
	if before, _ := p.told.Swap(object.KeyOf(node), all); before == all || all == "" {
		return
	}
	for _, problem := range problems {
		p.log.Warn("a Node has an annotation that cannot be simulated", "node", node.Name, "problem", problem)
		p.recorder.Warning(node, reasonInvalid, actionPublish, "%s", problem)
	}
}
