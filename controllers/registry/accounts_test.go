// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// accounts are the ServiceAccounts that kube-controller-manager runs its controllers as, with --use-service-account-credentials.
// Every API server gives them rights of their own, so that a cluster needs no manifest for them.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app, the names of clients.
var accounts = map[string]string{
	"bootstrap-signer-controller":                                    "bootstrap-signer",
	"certificatesigningrequest-approving-controller":                 "certificate-controller",
	"certificatesigningrequest-cleaner-controller":                   "certificate-controller",
	"certificatesigningrequest-signing-controller":                   "certificate-controller",
	"clusterrole-aggregation-controller":                             "clusterrole-aggregation-controller",
	"cronjob-controller":                                             "cronjob-controller",
	"daemonset-controller":                                           "daemon-set-controller",
	"deployment-controller":                                          "deployment-controller",
	"device-taint-eviction-controller":                               "device-taint-eviction-controller",
	"disruption-controller":                                          "disruption-controller",
	"endpoints-controller":                                           "endpoint-controller",
	"endpointslice-controller":                                       "endpointslice-controller",
	"endpointslice-mirroring-controller":                             "endpointslicemirroring-controller",
	"ephemeral-volume-controller":                                    "ephemeral-volume-controller",
	"garbage-collector-controller":                                   "generic-garbage-collector",
	"horizontal-pod-autoscaler-controller":                           "horizontal-pod-autoscaler",
	"job-controller":                                                 "job-controller",
	"kube-apiserver-serving-clustertrustbundle-publisher-controller": "kube-apiserver-serving-clustertrustbundle-publisher",
	"legacy-serviceaccount-token-cleaner-controller":                 "legacy-service-account-token-cleaner",
	"namespace-controller":                                           "namespace-controller",
	"node-ipam-controller":                                           "node-controller",
	"node-lifecycle-controller":                                      "node-controller",
	"persistentvolume-attach-detach-controller":                      "attachdetach-controller",
	"persistentvolume-binder-controller":                             "persistent-volume-binder",
	"persistentvolume-expander-controller":                           "expand-controller",
	"persistentvolume-protection-controller":                         "pv-protection-controller",
	"persistentvolumeclaim-protection-controller":                    "pvc-protection-controller",
	"pod-garbage-collector-controller":                               "pod-garbage-collector",
	"podcertificaterequest-cleaner-controller":                       "podcertificaterequestcleaner",
	"podgroup-protection-controller":                                 "podgroup-protection-controller",
	"replicaset-controller":                                          "replicaset-controller",
	"replicationcontroller-controller":                               "replication-controller",
	"resourceclaim-controller":                                       "resource-claim-controller",
	"resourcepoolstatusrequest-controller":                           "resourcepoolstatusrequest-controller",
	"resourcequota-controller":                                       "resourcequota-controller",
	"root-ca-certificate-publisher-controller":                       "root-ca-cert-publisher",
	"selinux-warning-controller":                                     "selinux-warning-controller",
	"service-cidr-controller":                                        "service-cidrs-controller",
	"serviceaccount-controller":                                      "service-account-controller",
	"serviceaccount-token-controller":                                "tokens-controller",
	"statefulset-controller":                                         "statefulset-controller",
	"storage-version-migrator-controller":                            "storage-version-migrator-controller",
	"storageversion-garbage-collector-controller":                    "storage-version-garbage-collector",
	"taint-eviction-controller":                                      "node-controller",
	"token-cleaner-controller":                                       "token-cleaner",
	"ttl-after-finished-controller":                                  "ttl-after-finished-controller",
	"ttl-controller":                                                 "ttl-controller",
	"validatingadmissionpolicy-status-controller":                    "validatingadmissionpolicy-status-controller",
	"volumeattributesclass-protection-controller":                    "volumeattributesclass-protection-controller",
}

func TestTheAccountsAreThoseOfKubeControllerManager(t *testing.T) {
	for _, d := range Known() {
		if got := d.Account().String(); got != "kube-system/"+accounts[d.Name] {
			t.Errorf("%s runs as %s, want kube-system/%s", d.Name, got, accounts[d.Name])
		}
	}
}

// moreRights are rights that a controller has in its manifest, and that a server does not give to its account. The right to get what an
// informer holds belongs to the informer: the controller makes no such request. Those of scheduling.k8s.io are for
// feature gates that are off; a server that has them on gives these rights too.
var moreRights = map[string][]string{
	"daemonset-controller":  {"get nodes.", "get pods."},
	"disruption-controller": {"get pods."},
	"job-controller": {
		"create podgroups.scheduling.k8s.io", "create workloads.scheduling.k8s.io", "get podgroups.scheduling.k8s.io", "get pods.",
		"get workloads.scheduling.k8s.io", "patch podgroups.scheduling.k8s.io", "patch workloads.scheduling.k8s.io",
	},
	"legacy-serviceaccount-token-cleaner-controller": {"get secrets."},
	"pod-garbage-collector-controller":               {"get pods."},
	"replicaset-controller":                          {"get pods."},
	"replicationcontroller-controller":               {"get pods."},
	"resourceclaim-controller":                       {"get podgroups.scheduling.k8s.io", "patch podgroups/status.scheduling.k8s.io"},
	"resourcequota-controller":                       {"get resourcequotas."},
	"root-ca-certificate-publisher-controller":       {"get configmaps."},
	"serviceaccount-controller":                      {"get serviceaccounts."},
	"ttl-controller":                                 {"get nodes."},
}

// A manager with --use-service-account-credentials replaces kube-controller-manager without a manifest. So what a controller
// writes, it may write with the rights that a server gives to its account. What the informers read, the process may read.
func TestTheRightsThatServersGiveToTheAccountsAreEnough(t *testing.T) {
	cluster := shared.Get(t)
	roles, bindings := client.For[*rbacv1.ClusterRole](cluster.Client), client.For[*rbacv1.ClusterRoleBinding](cluster.Client)
	for _, d := range Known() {
		binding, err := bindings.Get(t.Context(), object.Key{Name: "system:controller:" + d.Account().Name})
		if err != nil {
			t.Logf("%s: no rights of its own: %v", d.Name, err)
			continue
		}
		role, err := roles.Get(t.Context(), object.Key{Name: binding.RoleRef.Name})
		if err != nil {
			t.Fatal(err)
		}
		lacking := map[string]bool{}
		for _, rules := range d.Rights() {
			for _, rule := range rules {
				for _, right := range single(rule) {
					if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return grants(r, right) }) {
						lacking[fmt.Sprint(right.Verbs[0], " ", right.Resources[0], ".", right.APIGroups[0])] = true
					}
				}
			}
		}
		if got := slices.Sorted(maps.Keys(lacking)); !slices.Equal(got, moreRights[d.Name]) {
			t.Errorf("%s lacks %q", d.Name, got)
		}
	}
}

// single returns the rights that a rule lists, each alone, but those of informers and of other URLs.
func single(rule rbacv1.PolicyRule) (all []rbacv1.PolicyRule) {
	for _, verb := range rule.Verbs {
		if verb == "list" || verb == "watch" {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				all = append(all, rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: rule.ResourceNames})
			}
		}
	}
	return all
}

// grants reports whether a rule has a single right.
func grants(rule, right rbacv1.PolicyRule) bool {
	has := func(all, one []string) bool { return slices.Contains(all, "*") || slices.Contains(all, one[0]) }
	names := len(rule.ResourceNames) == 0 || len(right.ResourceNames) > 0 && !slices.ContainsFunc(right.ResourceNames, func(n string) bool { return !slices.Contains(rule.ResourceNames, n) })
	return has(rule.Verbs, right.Verbs) && has(rule.APIGroups, right.APIGroups) && (has(rule.Resources, right.Resources)) && names
}
