// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicationcontroller

import (
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/replicas"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "replicationcontroller-controller"

// source is whom events name, which users filter by. It is older than Name.
// Source: k8s.io/kubernetes/pkg/controller/replication, NewReplicationManager.
const source = "replication-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many ReplicationControllers are worked on at a time.
	Workers int
	// Burst is how many Pods are created or deleted in one run.
	Burst int
	// IgnoreDeletionCost ignores the annotation with which users choose the Pods to keep,
	// as upstream does without the feature gate PodDeletionCost.
	IgnoreDeletionCost bool
}

var replicationControllers = object.Resource{Version: "v1", Plural: "replicationcontrollers", Kind: "ReplicationController", Namespaced: true}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	return replicas.New(h, replicas.Kind[*corev1.ReplicationController]{
		Controller: Name,
		Source:     source,
		Resource:   replicationControllers,
		Demand:     demand,
		Status:     status,
		WithStatus: withStatus,
	}, replicas.Options{Workers: o.Workers, Burst: o.Burst, IgnoreDeletionCost: o.IgnoreDeletionCost})
}

// demand returns what a ReplicationController wants. A selector without a label would
// match every Pod of the namespace; no server lets it in, and nothing is done for one
// that is there nevertheless.
func demand(rc *corev1.ReplicationController) (replicas.Demand, error) {
	switch {
	case len(rc.Spec.Selector) == 0:
		return replicas.Demand{}, errors.New("it selects by no label")
	case rc.Spec.Template == nil:
		return replicas.Demand{}, errors.New("it has no template")
	}
	d := replicas.Demand{
		Replicas: 1, // the server fills it in where a user says nothing
		MinReady: time.Duration(rc.Spec.MinReadySeconds) * time.Second,
		Selector: labels.SelectorFromSet(rc.Spec.Selector),
		Template: rc.Spec.Template,
	}
	if rc.Spec.Replicas != nil {
		d.Replicas = int(*rc.Spec.Replicas)
	}
	return d, nil
}

// status returns the status in the words of a ReplicaSet's.
func status(rc *corev1.ReplicationController) appsv1.ReplicaSetStatus {
	s := &rc.Status
	conditions := make([]appsv1.ReplicaSetCondition, len(s.Conditions))
	for i, c := range s.Conditions {
		conditions[i] = appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		}
	}
	return appsv1.ReplicaSetStatus{
		Replicas: s.Replicas, FullyLabeledReplicas: s.FullyLabeledReplicas,
		ReadyReplicas: s.ReadyReplicas, AvailableReplicas: s.AvailableReplicas,
		ObservedGeneration: s.ObservedGeneration, Conditions: conditions,
	}
}

// withStatus is the reverse of status. The Pods that terminate have no place in a
// ReplicationController's.
func withStatus(rc *corev1.ReplicationController, s appsv1.ReplicaSetStatus) *corev1.ReplicationController {
	conditions := make([]corev1.ReplicationControllerCondition, len(s.Conditions))
	for i, c := range s.Conditions {
		conditions[i] = corev1.ReplicationControllerCondition{
			Type: corev1.ReplicationControllerConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		}
	}
	next := *rc
	next.Status = corev1.ReplicationControllerStatus{
		Replicas: s.Replicas, FullyLabeledReplicas: s.FullyLabeledReplicas,
		ReadyReplicas: s.ReadyReplicas, AvailableReplicas: s.AvailableReplicas,
		ObservedGeneration: s.ObservedGeneration, Conditions: conditions,
	}
	return &next
}
