// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

// idleFlag is a flag of kube-controller-manager that has no effect here. It is accepted with
// every value that kube-controller-manager accepts, so that its command line works as it is.
type idleFlag struct {
	name  string
	value any // its default; a *checkedText for a form of its own
	least any // the least value that is accepted, an int32 or a time.Duration; nil: any
}

// idleGroup is flags that have no effect for one reason, called as the log calls them.
type idleGroup struct {
	why   string
	flags []idleFlag
}

// idleGroups are the flags of kube-controller-manager 1.37 that have no effect here.
// Source: kube-controller-manager --help for names and defaults, and the Validate functions
// in k8s.io/kubernetes/cmd/kube-controller-manager/app/options for the least values.
func idleGroups() []idleGroup {
	const some = int32(1)
	return []idleGroup{
		{"controllersNotHere", []idleFlag{
			{"allocate-node-cidrs", false, nil},
			{"attach-detach-reconcile-sync-period", time.Minute, time.Second},
			{"cidr-allocator-type", rangeAllocator, nil},
			{"cluster-cidr", "", nil},
			{"concurrent-cron-job-syncs", int32(5), some},
			{"concurrent-daemonset-syncs", int32(2), some},
			{"concurrent-device-taint-eviction-syncs", int32(8), some},
			{"concurrent-disruption-syncs", int32(1), nil},
			{"concurrent-ephemeralvolume-syncs", int32(5), some},
			{"concurrent-horizontal-pod-autoscaler-syncs", int32(5), some},
			{"concurrent-job-syncs", int32(5), some},
			{"concurrent-resource-quota-syncs", int32(5), nil},
			{"concurrent-resourceclaim-syncs", int32(50), some},
			{"concurrent-service-syncs", int32(1), nil}, // until 1.36
			{"concurrent-statefulset-syncs", int32(5), some},
			{"concurrent-validating-admission-policy-status-syncs", int32(5), nil},
			{"configure-cloud-routes", true, nil},
			{"disable-attach-detach-reconcile-sync", false, nil},
			{"disable-force-detach-on-timeout", false, nil},
			{"enable-dynamic-provisioning", true, nil},
			{"enable-hostpath-provisioner", false, nil},
			{"flex-volume-plugin-dir", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/", nil},
			{"horizontal-pod-autoscaler-cpu-initialization-period", 5 * time.Minute, nil},
			{"horizontal-pod-autoscaler-downscale-stabilization", 5 * time.Minute, nil},
			{"horizontal-pod-autoscaler-initial-readiness-delay", 30 * time.Second, nil},
			{"horizontal-pod-autoscaler-sync-period", 15 * time.Second, nil},
			{"horizontal-pod-autoscaler-tolerance", 0.1, nil},
			{"node-cidr-mask-size", int32(0), nil},
			{"node-cidr-mask-size-ipv4", int32(0), nil},
			{"node-cidr-mask-size-ipv6", int32(0), nil},
			{"pv-recycler-increment-timeout-nfs", int32(30), nil},
			{"pv-recycler-minimum-timeout-hostpath", int32(60), nil},
			{"pv-recycler-minimum-timeout-nfs", int32(300), nil},
			{"pv-recycler-pod-template-filepath-hostpath", "", nil},
			{"pv-recycler-pod-template-filepath-nfs", "", nil},
			{"pv-recycler-timeout-increment-hostpath", int32(30), nil},
			{"pvclaimbinder-sync-period", 15 * time.Second, nil},
			{"resource-quota-sync-period", 5 * time.Minute, nil},
			{"route-reconciliation-period", 10 * time.Second, nil},
			{"service-cluster-ip-range", &checkedText{kind: "string", check: atMostTwo}, nil},
		}},
		{"cloudProviders", []idleFlag{
			{"allow-untagged-cloud", false, nil},
			{"cloud-config", "", nil},
			{"cloud-provider", "", nil},
			{"cluster-name", "kubernetes", nil},
			{"external-cloud-volume-plugin", "", nil},
			{"node-sync-period", time.Duration(0), nil},
		}},
		{"logging", []idleFlag{
			{"log-flush-frequency", 5 * time.Second, time.Duration(1)},
			{"log-json-split-stream", false, nil},
			{"log-text-split-stream", false, nil},
			{"log-json-info-buffer-size", &checkedText{kind: "quantity", check: quantity}, nil},
			{"log-text-info-buffer-size", &checkedText{kind: "quantity", check: quantity}, nil},
			{"vmodule", &checkedText{kind: "pattern=N,...", check: levelsOfFiles}, nil},
		}},
		{"compatibility", []idleFlag{
			{"show-hidden-metrics-for-version", &checkedText{kind: "string", check: previousVersion}, nil},
		}},
	}
}

// rangeAllocator is the only type of allocator that kube-controller-manager still has.
// Source: k8s.io/kubernetes/pkg/controller/nodeipam/ipam, RangeAllocatorType.
const rangeAllocator = "RangeAllocator"

// idleFlags are those flags on a command line.
type idleFlags struct{ set *pflag.FlagSet }

func (f *idleFlags) flags(set *pflag.FlagSet) {
	f.set = set
	for _, group := range idleGroups() {
		for _, flag := range group.flags {
			flag.add(set)
			set.Lookup(flag.name).Hidden = true // the help is about what has an effect
		}
	}
}

func (f idleFlag) add(set *pflag.FlagSet) {
	const usage = "accepted as by kube-controller-manager, without effect"
	switch value := f.value.(type) {
	case bool:
		set.Bool(f.name, value, usage)
	case int32:
		set.Int32(f.name, value, usage)
	case float64:
		set.Float64(f.name, value, usage)
	case time.Duration:
		set.Duration(f.name, value, usage)
	case string:
		set.String(f.name, value, usage)
	case *checkedText:
		set.Var(value, f.name, usage)
	default:
		panic(fmt.Sprintf("--%s is a %T, of which there are no flags", f.name, value))
	}
}

// check returns what kube-controller-manager finds wrong with their values.
func (f *idleFlags) check() error {
	for _, group := range idleGroups() {
		for _, flag := range group.flags {
			switch least := flag.least.(type) {
			case int32:
				if n, err := f.set.GetInt32(flag.name); err != nil || n < least {
					return fmt.Errorf("--%s=%d: want %d or more", flag.name, n, least)
				}
			case time.Duration:
				if d, err := f.set.GetDuration(flag.name); err != nil || d < least {
					return fmt.Errorf("--%s=%s: want %s or more", flag.name, d, least)
				}
			}
		}
	}
	if provider := f.set.Lookup("cloud-provider").Value.String(); provider != "" && provider != "external" {
		return fmt.Errorf("--cloud-provider=%s: Kubernetes has no cloud providers of its own any more; want external, or leave it out", provider)
	}
	if kind := f.set.Lookup("cidr-allocator-type").Value.String(); kind != "" && kind != rangeAllocator {
		return fmt.Errorf("--cidr-allocator-type=%s: want %s, or leave it out", kind, rangeAllocator)
	}
	return nil
}

// given returns the flags that are on the command line, by the reason why they have no effect.
// They alternate with their reasons, as a logger takes attributes.
func (f *idleFlags) given() (attributes []any) {
	for _, group := range idleGroups() {
		var names []string
		for _, flag := range group.flags {
			if f.set.Changed(flag.name) {
				names = append(names, "--"+flag.name)
			}
		}
		if len(names) > 0 {
			attributes = append(attributes, group.why, strings.Join(names, " "))
		}
	}
	return attributes
}

// allocatesNodeCIDRs reports whether Nodes are to be given networks for their Pods.
func (f *idleFlags) allocatesNodeCIDRs() bool {
	on, err := f.set.GetBool("allocate-node-cidrs")
	return on && err == nil
}

// checkedText is a text of a form that its flag checks.
type checkedText struct {
	text, kind string
	check      func(string) error
}

// String implements pflag.Value.
func (c *checkedText) String() string { return c.text }

// Type implements pflag.Value.
func (c *checkedText) Type() string { return c.kind }

// ExplainsItself says that its errors do.
func (c *checkedText) ExplainsItself() {}

// Set implements pflag.Value.
func (c *checkedText) Set(text string) error {
	if err := c.check(text); err != nil {
		return err
	}
	c.text = text
	return nil
}

func quantity(text string) error {
	if _, err := resource.ParseQuantity(text); err != nil {
		return fmt.Errorf("want a number of bytes, such as 512Ki")
	}
	return nil
}
