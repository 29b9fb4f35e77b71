// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/controllers"
)

// upstreamNames are the controllers of kube-controller-manager 1.37, each with its short name
// if it has one, and with "off" if it is off by default.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app, the descriptors of the controllers.
const upstreamNames = `
bootstrap-signer-controller bootstrapsigner off
certificatesigningrequest-approving-controller csrapproving
certificatesigningrequest-cleaner-controller csrcleaner
certificatesigningrequest-signing-controller csrsigning
clusterrole-aggregation-controller clusterrole-aggregation
cronjob-controller cronjob
daemonset-controller daemonset
deployment-controller deployment
device-taint-eviction-controller
disruption-controller disruption
endpoints-controller endpoint
endpointslice-controller endpointslice
endpointslice-mirroring-controller endpointslicemirroring
ephemeral-volume-controller ephemeral-volume
garbage-collector-controller garbagecollector
horizontal-pod-autoscaler-controller horizontalpodautoscaling
job-controller job
kube-apiserver-serving-clustertrustbundle-publisher-controller
legacy-serviceaccount-token-cleaner-controller legacy-service-account-token-cleaner
namespace-controller namespace
node-ipam-controller nodeipam
node-lifecycle-controller nodelifecycle
persistentvolume-attach-detach-controller attachdetach
persistentvolume-binder-controller persistentvolume-binder
persistentvolume-expander-controller persistentvolume-expander
persistentvolume-protection-controller pv-protection
persistentvolumeclaim-protection-controller pvc-protection
pod-garbage-collector-controller podgc
podcertificaterequest-cleaner-controller
podgroup-protection-controller
replicaset-controller replicaset
replicationcontroller-controller replicationcontroller
resourceclaim-controller resource-claim-controller
resourcepoolstatusrequest-controller
resourcequota-controller resourcequota
root-ca-certificate-publisher-controller root-ca-cert-publisher
selinux-warning-controller off
service-cidr-controller
serviceaccount-controller serviceaccount
serviceaccount-token-controller serviceaccount-token
statefulset-controller statefulset
storage-version-migrator-controller svm
storageversion-garbage-collector-controller storage-version-gc
taint-eviction-controller
token-cleaner-controller tokencleaner off
ttl-after-finished-controller ttl-after-finished
ttl-controller ttl
validatingadmissionpolicy-status-controller
volumeattributesclass-protection-controller
`

// Each controller of kube-controller-manager is built in, or listed as missing, under the same
// names, and no other controller is built in.
func TestTheNamesAreThoseOfKubeControllerManager(t *testing.T) {
	missing := absent()
	upstream := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(upstreamNames)) {
		names := strings.Fields(line)
		off := names[len(names)-1] == "off"
		if off {
			names = names[:len(names)-1]
		}
		name, short := names[0], names[len(names)-1]
		upstream[name] = true
		all := Known()
		at := slices.IndexFunc(all, func(d *controllers.Descriptor) bool { return d.Name == name })
		switch {
		case at < 0 && (missing[name] != name || missing[short] != name):
			t.Errorf("%s is not known by the names %q", name, names)
		case at >= 0 && (all[at].OffByDefault != off || all[at].Alias != short && (all[at].Alias != "" || short != name)):
			t.Errorf("%s has the short name %q and is off by default: %t; want %q, %t", name, all[at].Alias, all[at].OffByDefault, short, off)
		}
	}
	if len(upstream) != 49 {
		t.Errorf("%d controllers in the list, want the 49 of kube-controller-manager 1.37", len(upstream))
	}
	for _, d := range Known() {
		if !upstream[d.Name] {
			t.Errorf("kube-controller-manager has no %s", d.Name)
		}
	}
}

// What is missing in the end are the controllers that belong to cloud providers.
func TestTheControllersOfCloudProvidersStayMissing(t *testing.T) {
	for _, name := range []string{"cloud-node-lifecycle-controller", "node-route-controller", "service-lb-controller"} {
		if absent()[name] != name || strings.Contains(upstreamNames, "\n"+name) {
			t.Errorf("%s is built in, or one of kube-controller-manager 1.37", name)
		}
	}
}
