// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// missingFlag says why setpoint has no flag of a name, if kube-controller-manager has it.
func missingFlag(name string) (why string, missing bool) {
	why, missing = missingFlags()[strings.ReplaceAll(name, "_", "-")]
	return why, missing
}

// missingFlags are the flags of kube-controller-manager 1.36 that setpoint does not have,
// and why, in words that go on after the name of the flag.
// Source: kube-controller-manager --help.
func missingFlags() map[string]string {
	missing := map[string]string{}
	for controller, flags := range map[string][]string{
		"cronjob-controller":                          {"concurrent-cron-job-syncs"},
		"daemonset-controller":                        {"concurrent-daemonset-syncs"},
		"device-taint-eviction-controller":            {"concurrent-device-taint-eviction-syncs"},
		"ephemeral-volume-controller":                 {"concurrent-ephemeralvolume-syncs"},
		"job-controller":                              {"concurrent-job-syncs"},
		"node-route-controller":                       {"configure-cloud-routes", "route-reconciliation-period"},
		"resourceclaim-controller":                    {"concurrent-resourceclaim-syncs"},
		"resourcequota-controller":                    {"concurrent-resource-quota-syncs", "resource-quota-sync-period"},
		"service-lb-controller":                       {"concurrent-service-syncs"},
		"statefulset-controller":                      {"concurrent-statefulset-syncs"},
		"validatingadmissionpolicy-status-controller": {"concurrent-validating-admission-policy-status-syncs"},
		"horizontal-pod-autoscaler-controller": {
			"concurrent-horizontal-pod-autoscaler-syncs", "horizontal-pod-autoscaler-cpu-initialization-period",
			"horizontal-pod-autoscaler-downscale-stabilization", "horizontal-pod-autoscaler-initial-readiness-delay",
			"horizontal-pod-autoscaler-sync-period", "horizontal-pod-autoscaler-tolerance",
		},
		"node-ipam-controller": {
			"allocate-node-cidrs", "cidr-allocator-type", "cluster-cidr", "node-cidr-mask-size",
			"node-cidr-mask-size-ipv4", "node-cidr-mask-size-ipv6", "service-cluster-ip-range",
		},
		"persistentvolume-attach-detach-controller": {
			"attach-detach-reconcile-sync-period", "disable-attach-detach-reconcile-sync", "disable-force-detach-on-timeout",
		},
		"persistentvolume-binder-controller": {
			"enable-dynamic-provisioning", "enable-hostpath-provisioner", "flex-volume-plugin-dir",
			"pv-recycler-increment-timeout-nfs", "pv-recycler-minimum-timeout-hostpath",
			"pv-recycler-minimum-timeout-nfs", "pv-recycler-pod-template-filepath-hostpath",
			"pv-recycler-pod-template-filepath-nfs", "pv-recycler-timeout-increment-hostpath", "pvclaimbinder-sync-period",
		},
	} {
		for _, flag := range flags {
			missing[flag] = "belongs to " + controller + ", which setpoint does not have yet; leave it out"
		}
	}
	const of = "is a flag of kube-controller-manager that setpoint does not have: "
	for why, flags := range map[string][]string{
		"it knows no cloud provider": {"allow-untagged-cloud", "cloud-config", "cloud-provider", "external-cloud-volume-plugin", "node-sync-period"},
		"health answers everybody, and the rest whom the API server allows it": {"authorization-always-allow-paths"},
		"it serves with TLS as Go does by default, on one port": {
			"disable-http2-serving", "http2-max-streams-per-connection", "permit-address-sharing", "permit-port-sharing",
			"tls-cipher-suites", "tls-curve-preferences", "tls-min-version", "tls-sni-cert-key",
		},
		"--tls-cert-file and --tls-private-key-file name the certificate": {"cert-dir"},
		"--profiling has no profiles of blocking":                         {"contention-profiling"},
		"controllers start at once":                                       {"controller-start-interval"},
		"the whole process has 16 s to stop":                              {"controller-shutdown-timeout"},
		"the lease of kube-controller-manager is for all controllers":     {"enable-leader-migration", "leader-migration-config"},
		"--log-format and -v say how it logs": {
			"log-flush-frequency", "log-json-info-buffer-size", "log-json-split-stream", "log-text-info-buffer-size",
			"log-text-split-stream", "logging-format", "vmodule",
		},
		"the kubeconfig names the API server": {"master"},
		"its metrics are its own":             {"allow-metric-labels", "allow-metric-labels-manifest", "disabled-metrics", "show-hidden-metrics-for-version"},
		"no controller here depends on it":    {"min-compatibility-version"},
		"it is the command setpoint version":  {"version"},
	} {
		for _, flag := range flags {
			missing[flag] = of + why
		}
	}
	return missing
}
