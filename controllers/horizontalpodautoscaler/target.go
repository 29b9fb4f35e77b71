// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"context"
	"errors"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/scaletarget"
	"github.com/setpoint-io/setpoint/object"
)

// target is what a HorizontalPodAutoscaler scales.
type target struct {
	resource object.Resource
	key      object.Key
	scale    *autoscalingv1.Scale
}

// findTarget reads the scale of a target. As in upstream, the reference names it by its group: the
// version may be one that is served no longer.
func findTarget(ctx context.Context, c *client.Client, hpa *autoscalingv2.HorizontalPodAutoscaler) (target, error) {
	ref := hpa.Spec.ScaleTargetRef
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return target{}, specError{fmt.Errorf("the apiVersion of spec.scaleTargetRef: %w", err)}
	}
	if version.Empty() {
		return target{}, specError{errors.New("spec.scaleTargetRef has no apiVersion: write that of the target, such as apps/v1")}
	}
	t := target{key: object.Key{Namespace: hpa.Namespace, Name: ref.Name}}
	if t.resource, err = c.ResolveAnyVersion(ctx, version.WithKind(ref.Kind)); err != nil {
		return target{}, err
	}
	if !t.resource.Namespaced {
		return target{}, fmt.Errorf("%s have no namespace, and a HorizontalPodAutoscaler scales objects of its own", t.resource)
	}
	t.scale, err = scaletarget.Read(ctx, c, t.resource, t.key)
	return t, err
}

// mostConflicts is how often a new size is written again after a conflict.
// Source: k8s.io/client-go/util/retry, DefaultRetry.
const mostConflicts = 5

// outcome is what became of a new size.
type outcome int

const (
	resized outcome = iota
	refused         // with an error
	moved           // another client has changed the size
	gone            // the target is deleted
)

// resize gives a target another size. An object changes often while its Pods come and go, and each
// change is a conflict: then the size is written again, unless another client has changed it.
func (t *target) resize(ctx context.Context, c *client.Client, replicas int32) (outcome, error) {
	from := t.scale.Spec.Replicas
	var err error
	for range mostConflicts {
		_, err = scaletarget.Write(ctx, c, t.resource, t.scale, replicas)
		switch {
		case err == nil:
			return resized, nil
		case client.AbsentAt(err, t.key):
			return gone, nil
		case !apierrors.IsConflict(err) && !client.Unanswered(err):
			return refused, err
		}
		now, failure := scaletarget.Read(ctx, c, t.resource, t.key)
		switch {
		case client.AbsentAt(failure, t.key):
			return gone, nil
		case failure != nil:
			return refused, err
		case client.Unanswered(err) && now.Spec.Replicas == replicas:
			return resized, nil // the answer was lost, the write was not
		case now.Spec.Replicas != from:
			return moved, nil
		}
		t.scale = now
	}
	return refused, err
}
