// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices. The networks of a cluster have no default.
// Sources: k8s.io/kubernetes/pkg/controller/nodeipam/ipam (cidrUpdateWorkers),
// k8s.io/cloud-provider/options (kubecloudshared.go).
func Defaults() Options {
	return Options{Workers: 30, AllocatorType: rangeAllocator}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "nodeipam", Account: "node-controller",
		Summary:  "gives Nodes the ranges of addresses of their Pods; with --allocate-node-cidrs",
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Enabling("allocate-node-cidrs", "give each Node a range of addresses for its Pods; needs --cluster-cidr"),
				controllers.Text("cluster-cidr", &o.ClusterCIDR, "the network of the Pods, or one of each family with a comma between them"),
				controllers.Text("service-cluster-ip-range", &o.ServiceClusterIPRange, "the networks of Services, whose addresses no Node gets").Checked(atMostTwo),
				controllers.Int("node-cidr-mask-size", &o.NodeMask, "the length of the prefix of a Node's range in a cluster of one family; 0 is 24 for IPv4 and 64 for IPv6"),
				controllers.Int("node-cidr-mask-size-ipv4", &o.NodeMaskIPv4, "the same for IPv4, in a cluster of two families or of IPv4; 0 is 24"),
				controllers.Int("node-cidr-mask-size-ipv6", &o.NodeMaskIPv6, "the same for IPv6, in a cluster of two families or of IPv6; 0 is 64"),
				controllers.Text("cidr-allocator-type", &o.AllocatorType, "how ranges are allocated; there is no other than RangeAllocator").Checked(rangeAllocatorOnly),
			}
		},
	}, New)
}
