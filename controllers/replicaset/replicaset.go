// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/replicas"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "replicaset-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many ReplicaSets are worked on at a time.
	Workers int
	// Burst is how many Pods are created or deleted in one run.
	Burst int
	// IgnoreDeletionCost ignores the annotation with which users choose the Pods to keep,
	// as upstream does without the feature gate PodDeletionCost.
	IgnoreDeletionCost bool
	// OmitTerminating leaves the Pods that terminate out of the status, as upstream
	// without the feature gate DeploymentReplicaSetTerminatingReplicas.
	OmitTerminating bool
}

var replicaSets = object.Resource{Group: "apps", Version: "v1", Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	metrics := &controllers.Metrics{}
	c, err := newController(h, o, newAgeRatio(metrics))
	if err != nil {
		return nil, err
	}
	metrics.StaleSyncSkips("replicaset_controller")
	return metrics.Of(c), nil
}

// newAgeRatio declares the histogram of the ages of Pods that are deleted.
// Source: k8s.io/kubernetes/pkg/controller/replicaset/metrics.
func newAgeRatio(m *controllers.Metrics) prometheus.Observer {
	return m.Histogram("replicaset_controller_sorting_deletion_age_ratio",
		"Ages of ready Pods that are chosen for deletion, divided by the age of the youngest ready Pod of the ReplicaSet.",
		prometheus.ExponentialBuckets(0.25, 2, 6)).WithLabelValues()
}

// newController returns the controller without its metrics, which ages has.
func newController(h controller.Host, o Options, ages prometheus.Observer) (*controller.Controller, error) {
	return replicas.New(h, replicas.Kind[*appsv1.ReplicaSet]{
		Controller: Name,
		Source:     Name,
		Resource:   replicaSets,
		Demand:     demand,
		Status:     func(set *appsv1.ReplicaSet) appsv1.ReplicaSetStatus { return set.Status },
		WithStatus: withStatus,
		AgeRatio:   ages.Observe,
	}, replicas.Options(o))
}

// demand returns what a ReplicaSet wants.
func demand(set *appsv1.ReplicaSet) (replicas.Demand, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return replicas.Demand{}, err
	}
	d := replicas.Demand{
		Replicas: 1, // the server fills it in where a user says nothing
		MinReady: time.Duration(set.Spec.MinReadySeconds) * time.Second,
		Selector: selector,
		Template: &set.Spec.Template,
	}
	if set.Spec.Replicas != nil {
		d.Replicas = int(*set.Spec.Replicas)
	}
	return d, nil
}

func withStatus(set *appsv1.ReplicaSet, status appsv1.ReplicaSetStatus) *appsv1.ReplicaSet {
	next := *set
	next.Status = status
	return &next
}
