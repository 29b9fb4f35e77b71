// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scaletarget

import (
	"context"
	"fmt"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// NoScaleError is the error of a kind whose objects have no scale.
type NoScaleError struct{ Resource object.Resource }

func (e *NoScaleError) Error() string {
	return fmt.Sprintf("%s does not implement the scale subresource", e.Resource.GroupVersionResource().GroupResource())
}

// Read returns the scale of an object, as the server has it. The error is a [NoScaleError] if the
// kind has no scale, and apierrors.IsNotFound if the object does not exist.
func Read(ctx context.Context, c *client.Client, of object.Resource, key object.Key) (*autoscalingv1.Scale, error) {
	scale, err := view(c, of).Get(ctx, key)
	if err == nil || client.AbsentAt(err, key) {
		return scale, err
	}
	// A server answers for a path that it does not have as for an object that does not exist,
	// and names none.
	if !apierrors.IsNotFound(err) {
		return nil, err
	}
	names, failure := c.Subresources(ctx, of)
	switch {
	case failure != nil:
		return nil, failure
	case !slices.Contains(names, "scale"):
		return nil, &NoScaleError{of}
	}
	return nil, err
}

// Write asks the server for another number of replicas, if the object is still as scale shows it.
// It is a conflict (apierrors.IsConflict) if the object has changed since.
func Write(ctx context.Context, c *client.Client, of object.Resource, scale *autoscalingv1.Scale, replicas int32) (*autoscalingv1.Scale, error) {
	next := *scale
	next.Spec.Replicas = replicas
	return view(c, of).Update(ctx, object.KeyOf(scale), &next)
}

func view(c *client.Client, of object.Resource) client.Subresource[*autoscalingv1.Scale] {
	return client.Sub[*autoscalingv1.Scale](client.ForResource[*metav1.PartialObjectMetadata](c, of), "scale")
}
