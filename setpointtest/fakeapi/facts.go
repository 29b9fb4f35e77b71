// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/setpoint-io/setpoint/object"
)

// facts is what is particular to a resource.
type facts struct {
	builtin       bool
	shortNames    []string
	verbs         []string
	status        bool // has the subresource status
	scale         bool // has the subresource scale
	generation    bool // counts changes of its specification
	annotations   bool // counts those of its annotations, too
	unconditional bool // can be updated without a resourceVersion
	upsert        bool // is created by an update
	returnsGone   bool // answers a deletion with the object
	lifecycle     lifecycle
	fields        map[string]selectable
}

// lifecycle is what objects of a kind do when they are created and deleted.
type lifecycle int

const (
	plain        lifecycle = iota
	ofPods                 // they are Pending first, and deleted with a grace period
	ofNamespaces           // they have finalizers in their specification
)

var lifecycles = map[string]lifecycle{"pods": ofPods, "namespaces": ofNamespaces}

// selectable is what a field selector selects by.
type selectable struct {
	path string
	zero string // what an object without the field has
}

// factsOf returns what is known of a resource. Of a custom one that is what every custom
// resource is like.
func factsOf(r object.Resource) facts {
	f := facts{generation: true, verbs: verbs, fields: map[string]selectable{"metadata.name": {path: "metadata.name"}, "metadata.namespace": {path: "metadata.namespace"}}}
	example, err := scheme.Scheme.New(r.GroupVersionKind())
	if err != nil {
		return f
	}
	f.builtin = true
	_, f.status = reflect.TypeOf(example).Elem().FieldByName("Status")
	name := r.String()
	f.shortNames = shortNames[name]
	if slices.Contains(onlyCreated, name) {
		f.verbs = []string{"create"}
	}
	f.scale = slices.Contains(scaled, name)
	f.generation = slices.Contains(withGeneration, name)
	f.annotations = name == "deployments.apps"
	f.unconditional = !slices.Contains(onlyWithVersion, name)
	f.upsert = slices.Contains(createdByUpdate, name)
	f.returnsGone = slices.Contains(returnedWhenDeleted, name)
	f.lifecycle = lifecycles[name]
	maps.Copy(f.fields, selectables[name])
	return f
}

// validName checks a name as the kind does. Most kinds have names that are DNS subdomains.
func (r *Resource) validName(name string, prefix bool) []string {
	switch {
	case r.lifecycle == ofNamespaces:
		return apivalidation.NameIsDNSLabel(name, prefix)
	case r.builtin && r.Plural == "services":
		return apivalidation.NameIsDNS1035Label(name, prefix)
	case r.Group == "rbac.authorization.k8s.io", r.Group == "certificates.k8s.io" && r.Plural == "clustertrustbundles":
		return content.IsPathSegmentName(name)
	}
	return apivalidation.NameIsDNSSubdomain(name, prefix)
}

// has reports whether there is a subresource.
func (f *facts) has(subresource string) bool {
	switch subresource {
	case "status":
		return f.status
	case "scale":
		return f.scale
	case "finalize":
		return f.lifecycle == ofNamespaces
	}
	return false
}

// The tables are of Kubernetes 1.37. Source: k8s.io/kubernetes/pkg/registry, the strategy
// and the storage of each resource.
var (
	shortNames = map[string][]string{
		"componentstatuses": {"cs"}, "configmaps": {"cm"}, "endpoints": {"ep"}, "events": {"ev"}, "limitranges": {"limits"},
		"namespaces": {"ns"}, "nodes": {"no"}, "persistentvolumeclaims": {"pvc"}, "persistentvolumes": {"pv"}, "pods": {"po"},
		"replicationcontrollers": {"rc"}, "resourcequotas": {"quota"}, "serviceaccounts": {"sa"}, "services": {"svc"},
		"daemonsets.apps": {"ds"}, "deployments.apps": {"deploy"}, "replicasets.apps": {"rs"}, "statefulsets.apps": {"sts"},
		"horizontalpodautoscalers.autoscaling": {"hpa"}, "cronjobs.batch": {"cj"},
		"certificatesigningrequests.certificates.k8s.io": {"csr"}, "events.events.k8s.io": {"ev"},
		"ingresses.networking.k8s.io": {"ing"}, "ipaddresses.networking.k8s.io": {"ip"}, "networkpolicies.networking.k8s.io": {"netpol"},
		"poddisruptionbudgets.policy": {"pdb"}, "priorityclasses.scheduling.k8s.io": {"pc"},
		"storageclasses.storage.k8s.io": {"sc"}, "volumeattributesclasses.storage.k8s.io": {"vac"},
	}

	onlyCreated = []string{
		"bindings", "tokenreviews.authentication.k8s.io", "selfsubjectreviews.authentication.k8s.io",
		"subjectaccessreviews.authorization.k8s.io", "localsubjectaccessreviews.authorization.k8s.io",
		"selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectrulesreviews.authorization.k8s.io",
	}

	scaled = []string{"deployments.apps", "replicasets.apps", "statefulsets.apps", "replicationcontrollers"}

	withGeneration = []string{
		"pods", "podtemplates", "replicationcontrollers",
		"daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps",
		"cronjobs.batch", "jobs.batch", "horizontalpodautoscalers.autoscaling",
		"ingresses.networking.k8s.io", "ingressclasses.networking.k8s.io", "networkpolicies.networking.k8s.io",
		"endpointslices.discovery.k8s.io", "poddisruptionbudgets.policy", "priorityclasses.scheduling.k8s.io",
		"flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
		"deviceclasses.resource.k8s.io", "devicetaintrules.resource.k8s.io", "resourceslices.resource.k8s.io",
		"mutatingadmissionpolicies.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io",
		"validatingadmissionpolicies.admissionregistration.k8s.io", "validatingadmissionpolicybindings.admissionregistration.k8s.io",
	}

	onlyWithVersion = []string{
		"leases.coordination.k8s.io", "leasecandidates.coordination.k8s.io", "poddisruptionbudgets.policy",
		"runtimeclasses.node.k8s.io", "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io",
		"csistoragecapacities.storage.k8s.io", "volumeattachments.storage.k8s.io",
		"clustertrustbundles.certificates.k8s.io", "podcertificaterequests.certificates.k8s.io",
		"mutatingadmissionpolicies.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io",
		"validatingadmissionpolicies.admissionregistration.k8s.io", "validatingadmissionpolicybindings.admissionregistration.k8s.io",
		"podgroups.scheduling.k8s.io", "compositepodgroups.scheduling.k8s.io", "workloads.scheduling.k8s.io",
		"storageversions.internal.apiserver.k8s.io", "storageversionmigrations.storagemigration.k8s.io",
	}

	createdByUpdate = []string{
		"leases.coordination.k8s.io", "leasecandidates.coordination.k8s.io", "limitranges", "events", "events.events.k8s.io",
		"services", "endpoints", "runtimeclasses.node.k8s.io", "roles.rbac.authorization.k8s.io",
		"rolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
	}

	returnedWhenDeleted = []string{
		"pods", "services", "serviceaccounts", "namespaces", "persistentvolumes", "persistentvolumeclaims", "podtemplates",
		"resourcequotas", "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io", "storageclasses.storage.k8s.io",
		"volumeattachments.storage.k8s.io", "volumeattributesclasses.storage.k8s.io", "deviceclasses.resource.k8s.io",
		"resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io", "resourceslices.resource.k8s.io",
	}

	involved = func(name string) map[string]selectable {
		fields := map[string]selectable{"reason": {path: "reason"}, "type": {path: "type"}}
		for _, part := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
			fields[name+"."+part] = selectable{path: name + "." + part}
		}
		return fields
	}

	selectables = map[string]map[string]selectable{
		"pods": {
			"spec.nodeName": {path: "spec.nodeName"}, "spec.restartPolicy": {path: "spec.restartPolicy"},
			"spec.schedulerName": {path: "spec.schedulerName"}, "spec.serviceAccountName": {path: "spec.serviceAccountName"},
			"spec.hostNetwork": {path: "spec.hostNetwork", zero: "false"}, "status.phase": {path: "status.phase"},
			"status.podIP": {path: "status.podIP"}, "status.nominatedNodeName": {path: "status.nominatedNodeName"},
		},
		"nodes":                  {"spec.unschedulable": {path: "spec.unschedulable", zero: "false"}},
		"namespaces":             {"status.phase": {path: "status.phase"}, "name": {path: "metadata.name"}},
		"secrets":                {"type": {path: "type"}},
		"services":               {"spec.clusterIP": {path: "spec.clusterIP"}, "spec.type": {path: "spec.type"}},
		"replicationcontrollers": {"status.replicas": {path: "status.replicas", zero: "0"}},
		"replicasets.apps":       {"status.replicas": {path: "status.replicas", zero: "0"}},
		"jobs.batch":             {"status.successful": {path: "status.succeeded", zero: "0"}},
		"events":                 involved("involvedObject"),
		"events.events.k8s.io":   involved("regarding"),

		"certificatesigningrequests.certificates.k8s.io": {"spec.signerName": {path: "spec.signerName"}},
		"clustertrustbundles.certificates.k8s.io":        {"spec.signerName": {path: "spec.signerName"}},
		"resourceslices.resource.k8s.io": {
			"spec.nodeName": {path: "spec.nodeName"}, "spec.driver": {path: "spec.driver"}, "spec.pool.name": {path: "spec.pool.name"},
		},
	}
)
