// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/scaletarget"
	"github.com/setpoint-io/setpoint/object"
)

// owners finds the controllers of Pods and how many Pods they want.
type owners struct {
	client      *client.Client
	deployments cache.SharedInformer[*appsv1.Deployment]
	sets        cache.SharedInformer[*appsv1.ReplicaSet]
	controllers cache.SharedInformer[*corev1.ReplicationController]
	stateful    cache.SharedInformer[*appsv1.StatefulSet]
}

// sum returns how many Pods the controllers of a budget's Pods want, each controller counted
// once, and the Pods that have none.
func (o *owners) sum(ctx context.Context, pods []*corev1.Pod) (total int32, unmanaged []string, err error) {
	scales := map[types.UID]int32{}
	known := map[types.UID]bool{}
	for _, pod := range pods {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil {
			unmanaged = append(unmanaged, pod.Name)
			continue
		}
		if known[ref.UID] {
			continue
		}
		known[ref.UID] = true
		owner, replicas, err := o.scale(ctx, pod.Namespace, ref)
		if err != nil {
			return 0, nil, fmt.Errorf("finding how many Pods the controller of Pod %s wants: %w", pod.Name, err)
		}
		if replicas < 0 {
			// An API server refuses it in its own kinds and in custom ones, and another server behind it may not. The sum would allow disruptions for the Pods of others.
			return 0, nil, fmt.Errorf("the controller of Pod %s, the %s %s, wants %d replicas: give it a number that is not negative, "+
				"or set minAvailable to a number, which needs no scale", pod.Name, ref.Kind, ref.Name, replicas)
		}
		scales[owner] = replicas
	}
	var all int64
	for _, n := range scales {
		all += int64(n)
	}
	return int32(min(all, math.MaxInt32)), unmanaged, nil
}

// scale returns the controller that decides how many Pods there are, and their number. Of a
// ReplicaSet that has a Deployment, it is the Deployment.
func (o *owners) scale(ctx context.Context, namespace string, ref *metav1.OwnerReference) (types.UID, int32, error) {
	key := object.Key{Namespace: namespace, Name: ref.Name}
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	switch {
	case isReplicaSet(group):
		set, err := o.sets.Get(key)
		if err != nil || set.UID != ref.UID {
			break
		}
		above := metav1.GetControllerOfNoCopy(set)
		if above == nil || above.Kind != "Deployment" {
			return set.UID, orOne(set.Spec.Replicas), nil
		}
		d, err := o.deployments.Get(object.Key{Namespace: namespace, Name: above.Name})
		if err == nil && d.UID == above.UID {
			return d.UID, orOne(d.Spec.Replicas), nil
		}
	case group == schema.GroupKind{Kind: "ReplicationController"}:
		rc, err := o.controllers.Get(key)
		if err == nil && rc.UID == ref.UID {
			return rc.UID, orOne(rc.Spec.Replicas), nil
		}
	case group == schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}:
		set, err := o.stateful.Get(key)
		if err == nil && set.UID == ref.UID {
			return set.UID, orOne(set.Spec.Replicas), nil
		}
	}
	// The cache does not have it, or it is of another kind: the server knows its scale.
	return o.live(ctx, key, ref)
}

// live reads a scale from the server.
func (o *owners) live(ctx context.Context, key object.Key, ref *metav1.OwnerReference) (types.UID, int32, error) {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	resource, err := o.client.Resolve(ctx, kind)
	if err != nil {
		return "", 0, fmt.Errorf("its controller is the %s %s: %w", ref.Kind, ref.Name, err)
	}
	scale, err := scaletarget.Read(ctx, o.client, resource, key)
	if none, is := errors.AsType[*scaletarget.NoScaleError](err); is {
		return "", 0, fmt.Errorf("its controller is the %s %s, and %w: "+
			"set minAvailable to a number, which needs no scale", ref.Kind, ref.Name, none)
	}
	switch {
	case apierrors.IsNotFound(err):
		return "", 0, fmt.Errorf("its controller, the %s %s, is gone", ref.Kind, ref.Name)
	case err != nil:
		return "", 0, fmt.Errorf("reading the scale of its controller, the %s %s: %w", ref.Kind, ref.Name, err)
	case scale.UID != ref.UID:
		return "", 0, fmt.Errorf("its controller, the %s %s, is gone, and another one has its name", ref.Kind, ref.Name)
	}
	return scale.UID, scale.Spec.Replicas, nil
}

// isReplicaSet reports whether a kind is ReplicaSet, in the group of today or that of old.
func isReplicaSet(kind schema.GroupKind) bool {
	return kind.Kind == "ReplicaSet" && slices.Contains([]string{appsv1.GroupName, "extensions"}, kind.Group)
}

// orOne returns how many replicas a spec wants. The API server sets the default.
func orOne(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
