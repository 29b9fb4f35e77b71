// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds that count for more than their number.
var (
	Pods                   = schema.GroupResource{Resource: "pods"}
	Services               = schema.GroupResource{Resource: "services"}
	PersistentVolumeClaims = schema.GroupResource{Resource: "persistentvolumeclaims"}
	ResourceClaims         = schema.GroupResource{Group: resourcev1.GroupName, Resource: "resourceclaims"}
)

// aliases are the names under which some kinds are counted besides "count/…".
// Source: k8s.io/kubernetes/pkg/quota/v1/evaluator/core, legacyObjectCountAliases.
var aliases = map[schema.GroupResource]corev1.ResourceName{
	{Resource: "configmaps"}:             corev1.ResourceConfigMaps,
	{Resource: "resourcequotas"}:         corev1.ResourceQuotas,
	{Resource: "replicationcontrollers"}: corev1.ResourceReplicationControllers,
	{Resource: "secrets"}:                corev1.ResourceSecrets,
}

// CountName returns the resource that is the number of objects of a kind:
// "count/deployments.apps", or "count/pods" for a kind of the core group.
func CountName(kind schema.GroupResource) corev1.ResourceName {
	return corev1.ResourceName("count/" + kind.String())
}

// Object returns what an object counts for of which only the number matters.
func Object(kind schema.GroupResource) corev1.ResourceList {
	used := corev1.ResourceList{CountName(kind): number(1)}
	if alias, ok := aliases[kind]; ok {
		used[alias] = number(1)
	}
	return used
}

// Service returns what a Service counts for. A load balancer counts for a node port for each
// of its ports, unless it gets node ports only on request.
func Service(s *corev1.Service) corev1.ResourceList {
	used := corev1.ResourceList{
		CountName(Services):                  number(1),
		corev1.ResourceServices:              number(1),
		corev1.ResourceServicesLoadBalancers: number(0),
		corev1.ResourceServicesNodePorts:     number(0),
	}
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		used[corev1.ResourceServicesNodePorts] = number(len(s.Spec.Ports))
	case corev1.ServiceTypeLoadBalancer:
		used[corev1.ResourceServicesLoadBalancers] = number(1)
		ports := len(s.Spec.Ports)
		if allocate := s.Spec.AllocateLoadBalancerNodePorts; allocate != nil && !*allocate {
			ports = requestedNodePorts(s)
		}
		used[corev1.ResourceServicesNodePorts] = number(ports)
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName:
	}
	return used
}

func requestedNodePorts(s *corev1.Service) int {
	n := 0
	for i := range s.Spec.Ports {
		if s.Spec.Ports[i].NodePort != 0 {
			n++
		}
	}
	return n
}

func number(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }
