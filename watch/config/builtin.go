// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/internal/nearest"
)

// builtin has the kinds of Kubernetes that can be listed and watched, as plural.group with a
// mark behind those that are not in namespaces. Without a server nothing else tells that a
// Pod has no group and a Node no namespace. A kind that is not here is one of somebody
// else, or of another version of Kubernetes.
// Source: what kube-apiserver 1.37 serves; a test asks one.
var builtin = table(`
configmaps endpoints events limitranges namespaces/ nodes/ persistentvolumeclaims persistentvolumes/ pods podtemplates
replicationcontrollers resourcequotas secrets serviceaccounts services
mutatingadmissionpolicies.admissionregistration.k8s.io/ mutatingadmissionpolicybindings.admissionregistration.k8s.io/
mutatingwebhookconfigurations.admissionregistration.k8s.io/ validatingadmissionpolicies.admissionregistration.k8s.io/
validatingadmissionpolicybindings.admissionregistration.k8s.io/ validatingwebhookconfigurations.admissionregistration.k8s.io/
customresourcedefinitions.apiextensions.k8s.io/
apiservices.apiregistration.k8s.io/
controllerrevisions.apps daemonsets.apps deployments.apps replicasets.apps statefulsets.apps
horizontalpodautoscalers.autoscaling
cronjobs.batch jobs.batch
certificatesigningrequests.certificates.k8s.io/ clustertrustbundles.certificates.k8s.io/ podcertificaterequests.certificates.k8s.io
leases.coordination.k8s.io
endpointslices.discovery.k8s.io
events.events.k8s.io
flowschemas.flowcontrol.apiserver.k8s.io/ prioritylevelconfigurations.flowcontrol.apiserver.k8s.io/
ingressclasses.networking.k8s.io/ ingresses.networking.k8s.io ipaddresses.networking.k8s.io/
networkpolicies.networking.k8s.io servicecidrs.networking.k8s.io/
runtimeclasses.node.k8s.io/
poddisruptionbudgets.policy
clusterrolebindings.rbac.authorization.k8s.io/ clusterroles.rbac.authorization.k8s.io/
rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io
deviceclasses.resource.k8s.io/ devicetaintrules.resource.k8s.io/ resourceclaims.resource.k8s.io
resourceclaimtemplates.resource.k8s.io resourceslices.resource.k8s.io/
priorityclasses.scheduling.k8s.io/
csidrivers.storage.k8s.io/ csinodes.storage.k8s.io/ csistoragecapacities.storage.k8s.io storageclasses.storage.k8s.io/
volumeattachments.storage.k8s.io/ volumeattributesclasses.storage.k8s.io/
storageversionmigrations.storagemigration.k8s.io/
`)

// scope says whether the objects of a kind are in namespaces.
type scope int

const (
	unknownScope scope = iota // only the cluster knows
	inNamespaces
	inCluster
)

type kinds struct {
	scopes map[string]scope // by plural.group
	groups map[string]bool
	core   []string // without a group
	all    []string
}

func table(text string) kinds {
	k := kinds{scopes: map[string]scope{}, groups: map[string]bool{}}
	for name := range strings.FieldsSeq(text) {
		of := inNamespaces
		if plural, cluster := strings.CutSuffix(name, "/"); cluster {
			name, of = plural, inCluster
		}
		plural, group := splitKind(name)
		if group == "" {
			k.core = append(k.core, plural)
		}
		k.scopes[name], k.groups[group] = of, true
		k.all = append(k.all, name)
	}
	return k
}

// splitKind splits deployments.apps.
func splitKind(name string) (plural, group string) {
	plural, group, _ = strings.Cut(name, ".")
	return plural, group
}

// scopeOf says where objects of a kind are.
func scopeOf(kind string) scope { return builtin.scopes[kind] }

// known returns whether a kind without a group is one of the core group, which nobody
// can add to, and otherwise what may have been meant.
func known(plural string) (ok bool, meant string) {
	if scopeOf(plural) != unknownScope {
		return true, ""
	}
	lower := strings.ToLower(plural)
	for _, name := range builtin.all {
		p, _ := splitKind(name)
		if lower == p || lower+"s" == p || lower+"es" == p || strings.TrimSuffix(lower, "y")+"ies" == p || shortNames[lower] == name {
			return false, name
		}
	}
	// The nearest plural, be it of the core group or not.
	plurals := map[string]string{}
	for _, name := range slices.Backward(builtin.all) {
		p, _ := splitKind(name)
		plurals[p] = name
	}
	var sorted []string
	for p := range plurals {
		sorted = append(sorted, p)
	}
	slices.Sort(sorted)
	return false, plurals[nearest.Name(lower, sorted)]
}

// shortNames are those that kubectl takes for the kinds that people watch.
var shortNames = map[string]string{
	"cm": "configmaps", "ep": "endpoints", "ev": "events", "limits": "limitranges", "ns": "namespaces", "no": "nodes",
	"pvc": "persistentvolumeclaims", "pv": "persistentvolumes", "po": "pods", "rc": "replicationcontrollers",
	"quota": "resourcequotas", "sa": "serviceaccounts", "svc": "services", "crd": "customresourcedefinitions.apiextensions.k8s.io",
	"crds": "customresourcedefinitions.apiextensions.k8s.io", "ds": "daemonsets.apps", "deploy": "deployments.apps",
	"rs": "replicasets.apps", "sts": "statefulsets.apps", "hpa": "horizontalpodautoscalers.autoscaling", "cj": "cronjobs.batch",
	"csr": "certificatesigningrequests.certificates.k8s.io", "ing": "ingresses.networking.k8s.io",
	"netpol": "networkpolicies.networking.k8s.io", "pdb": "poddisruptionbudgets.policy", "pc": "priorityclasses.scheduling.k8s.io",
	"sc": "storageclasses.storage.k8s.io",
}
