// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/selectors"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
	"github.com/setpoint-io/setpoint/workqueue"
)

// setsOf returns the mapping from a Pod or a revision to the DaemonSets that it concerns: the one
// that controls it, or those that select it if it has no controller. The index finds them: the
// other DaemonSets of the namespace cost nothing.
func setsOf[T object.Object](selecting *selectors.Index[*appsv1.DaemonSet]) func(cache.Item[T], func(object.Key)) {
	return func(item cache.Item[T], add func(object.Key)) {
		namespace := item.Key().Namespace
		if ref := item.Controller(); ref != nil {
			if owner := owner(ref, namespace); !owner.IsZero() {
				add(owner)
			}
			return
		}
		if item.Deleting() {
			return
		}
		for key := range selecting.Selecting(namespace, item.Labels()) {
			add(key)
		}
	}
}

// owner returns the key of the DaemonSet that controls an object of a namespace, or else the zero Key.
func owner(ref *metav1.OwnerReference, namespace string) object.Key {
	if ref == nil || ref.Kind != kind.Kind {
		return object.Key{}
	}
	if version, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || version.Group != kind.Group {
		return object.Key{}
	}
	return object.Key{Namespace: namespace, Name: ref.Name}
}

// matters chooses the changes of Pods that a DaemonSet counts: of labels, controller, deletion,
// phase, readiness and the node, and whether the scheduler finds room. It decodes no Pod of another
// controller.
func matters(e cache.Event[*corev1.Pod]) bool {
	if e.Kind != cache.Updated {
		return true
	}
	if controllerUID(e.Old) != controllerUID(e.New) || e.Old.Labels() != e.New.Labels() {
		return true
	}
	if owner(e.New.Controller(), e.Key().Namespace).IsZero() {
		return false
	}
	if e.Old.Deleting() != e.New.Deleting() {
		return true
	}
	isAlike, err := alikeInStatus(e)
	if err != nil {
		return true // a run reports it
	}
	node, err := e.Old.Text(wire.NodeName)
	if err != nil {
		return true
	}
	now, err := e.New.Text(wire.NodeName)
	if err != nil || !isAlike || node == now {
		return err != nil || !isAlike
	}
	// The Pod was bound, perhaps to another node than the one that it is for.
	before, err := e.Old.Object()
	if err != nil {
		return true
	}
	after, err := e.New.Object()
	return err != nil || !newPodOf(before).alike(newPodOf(after))
}

// alikeInStatus reports whether a DaemonSet counts two states of a Pod alike, apart from their specs. Of the
// spec it reads only the node, and that changes only with spec.nodeName.
func alikeInStatus(e cache.Event[*corev1.Pod]) (bool, error) {
	before, err := e.Old.Without(wire.Spec)
	if err != nil {
		return false, err
	}
	after, err := e.New.Without(wire.Spec)
	if err != nil {
		return false, err
	}
	was, is := newPodOf(before), newPodOf(after)
	was.node, is.node = "", "" // one of the states may have its spec
	return was.alike(is), nil
}

func controllerUID(pod cache.Item[*corev1.Pod]) types.UID {
	if ref := pod.Controller(); ref != nil {
		return ref.UID
	}
	return ""
}

// mayFitOtherwise chooses the changes of nodes that DaemonSets look at: a node comes or goes, or
// its labels or taints change. A heartbeat is none. The nodes of the first list are for the first
// run of each DaemonSet.
// Source: k8s.io/kubernetes/pkg/controller/daemon, shouldIgnoreNodeUpdate.
func mayFitOtherwise(e cache.Event[*corev1.Node]) bool {
	if e.Kind != cache.Updated || e.Old.Labels() != e.New.Labels() {
		return true
	}
	was, err := e.Old.Object()
	if err != nil {
		return true // a run reports it
	}
	is, err := e.New.Object()
	return err != nil || !equality.Semantic.DeepEqual(was.Spec.Taints, is.Spec.Taints)
}

// reconcileNode enqueues the DaemonSets for which a node fits otherwise than in their last run.
// The others do not run.
func (r *reconciler) reconcileNode(_ context.Context, req controller.Request) (controller.Result, error) {
	r.mu.Lock()
	memories := maps.Clone(r.memories)
	r.mu.Unlock()
	var failures []error
	for key, m := range memories {
		changed, err := m.places.note(r.nodes, req.Key.Name)
		if err != nil {
			failures = append(failures, fmt.Errorf("comparing node %s with DaemonSet %s: %w", req.Key.Name, key, err))
		}
		if changed || err != nil {
			r.enqueue(key, req.Key)
		}
	}
	return controller.Result{}, errors.Join(failures...)
}

// enqueuing returns what adds a key to a loop because of a node.
func enqueuing(loop *controller.Controller) func(set, node object.Key) {
	return func(set, node object.Key) {
		loop.Queue().AddWith(workqueue.Add{Cause: workqueue.Cause{
			Source: Name + "-nodes", Verb: workqueue.Enqueued, Ref: object.Ref{Kind: "Node", Key: node},
		}}, set)
	}
}

// generationOf returns the generation of a DaemonSet's template, as an annotation of old clusters
// has it, or "". What is no number is no generation.
// Source: k8s.io/kubernetes/pkg/controller/daemon/util, GetTemplateGeneration.
func generationOf(set *appsv1.DaemonSet) string {
	n, err := strconv.ParseInt(set.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
