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

// sizes are how many Pods the controllers of a budget's Pods want.
type sizes struct {
	total     int32
	unmanaged []string // Pods without a controller
	live      bool     // one of the sizes was read from the server
}

// sum returns how many Pods the controllers of a budget's Pods want, each controller counted
// once. It asks for the size of each controller once, whatever number of Pods it has.
func (o *owners) sum(ctx context.Context, pods []*corev1.Pod) (sizes, error) {
	var s sizes
	scales := map[types.UID]int32{}
	known := map[types.UID]bool{}
	for _, pod := range pods {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil {
			s.unmanaged = append(s.unmanaged, pod.Name)
			continue
		}
		if known[ref.UID] {
			continue
		}
		known[ref.UID] = true
		owner, replicas, found := o.cached(pod.Namespace, ref)
		if !found {
			s.live = true
			var err error
			if owner, replicas, err = o.live(ctx, object.Key{Namespace: pod.Namespace, Name: ref.Name}, ref); err != nil {
				return sizes{}, fmt.Errorf("finding how many Pods the controller of Pod %s wants: %w", pod.Name, err)
			}
		}
		if replicas < 0 {
			// An API server refuses it in its own kinds and in custom ones, and another server behind it may not. The sum would allow disruptions for the Pods of others.
			return sizes{}, fmt.Errorf("the controller of Pod %s, the %s %s, wants %d replicas: give it a number that is not negative, "+
				"or set minAvailable to a number, which needs no scale", pod.Name, ref.Kind, ref.Name, replicas)
		}
		scales[owner] = replicas
	}
	var all int64
	for _, n := range scales {
		all += int64(n)
	}
	s.total = int32(min(all, math.MaxInt32))
	return s, nil
}

// cached returns the controller that decides how many Pods there are, and their number. Of a
// ReplicaSet that has a Deployment, it is the Deployment. It returns false if the cache does not have
// the controller, or if it is of a kind that is not watched: the server knows its scale.
func (o *owners) cached(namespace string, ref *metav1.OwnerReference) (owner types.UID, replicas int32, found bool) {
	key := object.Key{Namespace: namespace, Name: ref.Name}
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	switch {
	case isReplicaSet(group):
		set, err := o.sets.Get(key)
		if err != nil || set.UID != ref.UID {
			break
		}
		above := metav1.GetControllerOfNoCopy(set)
		if !isDeployment(above) {
			return set.UID, orOne(set.Spec.Replicas), true
		}
		d, err := o.deployments.Get(object.Key{Namespace: namespace, Name: above.Name})
		if err == nil && d.UID == above.UID {
			return d.UID, orOne(d.Spec.Replicas), true
		}
	case group == schema.GroupKind{Kind: "ReplicationController"}:
		rc, err := o.controllers.Get(key)
		if err == nil && rc.UID == ref.UID {
			return rc.UID, orOne(rc.Spec.Replicas), true
		}
	case group == schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}:
		set, err := o.stateful.Get(key)
		if err == nil && set.UID == ref.UID {
			return set.UID, orOne(set.Spec.Replicas), true
		}
	}
	return "", 0, false
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

// isDeployment reports whether the controller of a ReplicaSet decides about the ReplicaSet's Pods, so that the size of the
// ReplicaSet itself does not count. Other controllers of ReplicaSets, those of custom kinds, may be of any form.
func isDeployment(controller *metav1.OwnerReference) bool {
	return controller != nil && controller.Kind == "Deployment"
}

// orOne returns how many replicas a spec wants. The API server sets the default.
func orOne(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
