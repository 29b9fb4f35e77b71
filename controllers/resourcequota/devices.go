// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/controller/accounting"
	"github.com/setpoint-io/setpoint/object"
)

// devices are the extended resources of the cluster's DeviceClasses. It is safe for concurrent
// use.
type devices struct {
	mu        sync.RWMutex
	resources map[string]string // by the names of the classes
}

// load takes over all DeviceClasses of a view, and reports whether one of them is another one.
func (d *devices) load(v view) (differs bool, err error) {
	resources := map[string]string{}
	for key, s := range v.in("") {
		o, err := s.read()
		if err != nil {
			return false, err
		}
		if class, ok := o.(*resourcev1.DeviceClass); ok && class.Spec.ExtendedResourceName != nil {
			resources[key.Name] = *class.Spec.ExtendedResourceName
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	differs = len(resources) != len(d.resources)
	for class, resource := range resources {
		differs = differs || d.resources[class] != resource
	}
	d.resources = resources
	return differs, nil
}

func (d *devices) extendedResource(class string) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.resources[class]
}

func (d *devices) hasClass(resource string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, of := range d.resources {
		if of == resource {
			return true
		}
	}
	return false
}

// around returns what the charges of an account depend on besides the objects. The caller holds
// the lock of the account.
func (d *devices) around(a *account, now time.Time) accounting.Around {
	return accounting.Around{
		Now: now, ExtendedResource: d.extendedResource, HasDeviceClass: d.hasClass,
		PodOf: func(c *resourcev1.ResourceClaim) *corev1.Pod { return podOf(a.sources, c) },
	}
}

// podOf returns the Pod for whose extended resources the scheduler has made a claim.
func podOf(sources map[schema.GroupResource]source, c *resourcev1.ResourceClaim) *corev1.Pod {
	pods, claims := sources[accounting.Pods].view, sources[accounting.ResourceClaims].view
	ref := metav1.GetControllerOfNoCopy(c)
	if pods == nil || claims == nil || ref == nil || c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
		return nil
	}
	pod, ok := decoded[*corev1.Pod](pods.get(object.Key{Namespace: c.Namespace, Name: ref.Name}))
	if !ok || pod.UID != ref.UID {
		return nil
	}
	var siblings []*resourcev1.ResourceClaim
	for _, s := range claims.controlledBy(pod.Namespace, pod.UID) {
		if sibling, ok := decoded[*resourcev1.ResourceClaim](s, true); ok && sibling.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" {
			siblings = append(siblings, sibling)
		}
	}
	if !accounting.StandsFor(c, pod, siblings) {
		return nil
	}
	return pod
}

// decoded returns an object that is there as its Go type.
func decoded[T any](s subject, there bool) (o T, ok bool) {
	if !there {
		return o, false
	}
	read, err := s.read()
	if err != nil {
		return o, false
	}
	o, ok = read.(T)
	return o, ok
}
