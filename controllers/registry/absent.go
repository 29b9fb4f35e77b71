// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"strings"
)

// absent are the full names of the controllers of kube-controller-manager 1.34 to 1.37 that
// are not built in, by all their names. --controllers may name them: command lines
// of kube-controller-manager do.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names and app, the descriptors of
// the controllers.
func absent() map[string]string {
	all := map[string]string{}
	for _, names := range []string{
		"cloud-node-lifecycle-controller cloud-node-lifecycle",
		"cronjob-controller cronjob",
		"daemonset-controller daemonset",
		"device-taint-eviction-controller",
		"disruption-controller disruption",
		"ephemeral-volume-controller ephemeral-volume",
		"horizontal-pod-autoscaler-controller horizontalpodautoscaling",
		"job-controller job",
		"kube-apiserver-serving-clustertrustbundle-publisher-controller",
		"node-ipam-controller nodeipam",
		"node-route-controller route",
		"persistentvolume-attach-detach-controller attachdetach",
		"persistentvolume-binder-controller persistentvolume-binder",
		"persistentvolume-expander-controller persistentvolume-expander",
		"podcertificaterequest-cleaner-controller",
		"podgroup-protection-controller",
		"resourceclaim-controller resource-claim-controller",
		"resourcepoolstatusrequest-controller",
		"resourcequota-controller resourcequota",
		"selinux-warning-controller",
		"service-cidr-controller",
		"service-lb-controller service",
		"statefulset-controller statefulset",
		"storage-version-migrator-controller svm",
		"storageversion-garbage-collector-controller storage-version-gc",
		"validatingadmissionpolicy-status-controller",
		"volumeattributesclass-protection-controller",
	} {
		name, _, _ := strings.Cut(names, " ")
		for each := range strings.FieldsSeq(names) {
			all[each] = name
		}
	}
	for _, d := range Known() {
		delete(all, d.Name)
		delete(all, d.Alias)
	}
	return all
}

// Absent returns the full names of the controllers that a list for [Select] chooses and that
// are controllers of kube-controller-manager without being built in, in the order of their
// names. Those that it leaves out are not among them.
func Absent(choice []string) []string {
	full := absent()
	chosen := map[string]bool{}
	for _, item := range choice {
		name, without := strings.CutPrefix(item, "-")
		if of, ok := full[name]; ok {
			if _, mentioned := chosen[of]; !mentioned {
				chosen[of] = !without
			}
		}
	}
	var names []string
	for name, wanted := range chosen {
		if wanted {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Excludes reports whether a list for [Select] leaves a controller out that is not built in,
// by either of its names.
func Excludes(choice []string, controller string) bool {
	full := absent()
	wanted := false
	for _, item := range choice {
		name, without := strings.CutPrefix(item, "-")
		if full[name] == controller {
			return without
		}
		wanted = wanted || item == "*"
	}
	return !wanted
}
