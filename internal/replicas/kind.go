// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/object"
)

// Kind describes how objects of one kind own Pods. T is the type of the objects. The
// functions change nothing and are safe for concurrent use.
type Kind[T object.Object] struct {
	// Controller is the name of the kind's controller.
	Controller string
	// Source is whom events name, which users filter by.
	Source string
	// Resource is the kind.
	Resource object.Resource

	// Demand returns what an object wants. An error is one that lies in the object, and
	// that trying again does not mend.
	Demand func(T) (Demand, error)
	// Status returns an object's status. A kind whose status says less than a
	// ReplicaSet's leaves out the rest.
	Status func(T) appsv1.ReplicaSetStatus
	// WithStatus returns the object with another status, or as much of it as the
	// kind has. It shares the rest with the object that it was given.
	WithStatus func(T, appsv1.ReplicaSetStatus) T

	// AgeRatio, unless it is nil, is called for each ready Pod that is chosen for deletion while
	// others stay. ratio is its age divided by that of the youngest ready Pod.
	AgeRatio func(ratio float64)
}

// selector returns what an owner selects.
func (k *Kind[T]) selector(owner T) (labels.Selector, error) {
	asked, err := k.Demand(owner)
	return asked.Selector, err
}
