// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/object"
)

// Kubernetes' own kinds are known by this table, and not by client-go's scheme. A scheme
// holds every type of every version, so a program that names it is linked with all of
// them: for the manager that was 6 MB of code that is never run, much of which is
// resident, and 3 ms and 0.7 MB at each start. Discovery has the same facts as the table,
// for one more request a group at each start.
//
// Tests compare the table with client-go's scheme and with what a real server serves.

// builtinGroup is an API group of Kubernetes.
type builtinGroup struct {
	name       string
	folder     string // of its types below k8s.io/api
	namespaced []string
	cluster    []string // the kinds whose objects live outside of namespaces
}

var builtinGroups = []builtinGroup{
	{name: "", folder: "core", namespaced: []string{
		"Binding", "ConfigMap", "Endpoints", "Event", "LimitRange", "PersistentVolumeClaim", "Pod", "PodTemplate",
		"ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount",
	}, cluster: []string{"ComponentStatus", "Namespace", "Node", "PersistentVolume"}},
	{name: "admissionregistration.k8s.io", folder: "admissionregistration", cluster: []string{
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	}},
	{name: "apps", folder: "apps", namespaced: []string{
		"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet",
	}},
	{name: "authentication.k8s.io", folder: "authentication", namespaced: []string{"TokenRequest"}, cluster: []string{
		"SelfSubjectReview", "TokenReview",
	}},
	{name: "authorization.k8s.io", folder: "authorization", namespaced: []string{"LocalSubjectAccessReview"}, cluster: []string{
		"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview",
	}},
	{name: "autoscaling", folder: "autoscaling", namespaced: []string{"HorizontalPodAutoscaler", "Scale"}},
	{name: "batch", folder: "batch", namespaced: []string{"CronJob", "Job"}},
	{name: "certificates.k8s.io", folder: "certificates", namespaced: []string{"PodCertificateRequest"}, cluster: []string{
		"CertificateSigningRequest", "ClusterTrustBundle",
	}},
	{name: "coordination.k8s.io", folder: "coordination", namespaced: []string{"Lease", "LeaseCandidate"}},
	{name: "discovery.k8s.io", folder: "discovery", namespaced: []string{"EndpointSlice"}},
	{name: "events.k8s.io", folder: "events", namespaced: []string{"Event"}},
	{name: "extensions", folder: "extensions", namespaced: []string{
		"DaemonSet", "Deployment", "Ingress", "NetworkPolicy", "ReplicaSet",
	}},
	{name: "flowcontrol.apiserver.k8s.io", folder: "flowcontrol", cluster: []string{
		"FlowSchema", "PriorityLevelConfiguration",
	}},
	{name: "internal.apiserver.k8s.io", folder: "apiserverinternal", cluster: []string{"StorageVersion"}},
	{name: "lifecycle.k8s.io", folder: "lifecycle", namespaced: []string{"Eviction", "EvictionRequest"}},
	{name: "networking.k8s.io", folder: "networking", namespaced: []string{"Ingress", "NetworkPolicy"}, cluster: []string{
		"IPAddress", "IngressClass", "ServiceCIDR",
	}},
	{name: "node.k8s.io", folder: "node", cluster: []string{"RuntimeClass"}},
	{name: "policy", folder: "policy", namespaced: []string{"Eviction", "PodDisruptionBudget"}},
	{name: "rbac.authorization.k8s.io", folder: "rbac", namespaced: []string{"Role", "RoleBinding"}, cluster: []string{
		"ClusterRole", "ClusterRoleBinding",
	}},
	{name: "resource.k8s.io", folder: "resource", namespaced: []string{"ResourceClaim", "ResourceClaimTemplate"}, cluster: []string{
		"DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "ResourceSlice",
	}},
	{name: "scheduling.k8s.io", folder: "scheduling", namespaced: []string{"CompositePodGroup", "PodGroup", "Workload"}, cluster: []string{
		"PriorityClass",
	}},
	{name: "storage.k8s.io", folder: "storage", namespaced: []string{"CSIStorageCapacity"}, cluster: []string{
		"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass",
	}},
	{name: "storagemigration.k8s.io", folder: "storagemigration", cluster: []string{"StorageVersionMigration"}},
}

// builtinKinds records for each kind whether its objects live in namespaces, and
// builtinFolders the group of the types in a folder.
var builtinKinds, builtinFolders = func() (map[schema.GroupKind]bool, map[string]string) {
	kinds, folders := map[schema.GroupKind]bool{}, map[string]string{}
	for _, group := range builtinGroups {
		folders[group.folder] = group.name
		for _, kind := range group.namespaced {
			kinds[schema.GroupKind{Group: group.name, Kind: kind}] = true
		}
		for _, kind := range group.cluster {
			kinds[schema.GroupKind{Group: group.name, Kind: kind}] = false
		}
	}
	return kinds, folders
}()

// Builtin says whether a kind is one of Kubernetes' own, in whichever version. The server
// takes strategic merge patches of these alone.
func Builtin(kind schema.GroupKind) bool {
	_, known := builtinKinds[kind]
	return known
}

// builtinResource returns how a server serves one of Kubernetes' own kinds.
func builtinResource(kind schema.GroupVersionKind) (object.Resource, bool) {
	namespaced, known := builtinKinds[kind.GroupKind()]
	if !known {
		return object.Resource{}, false
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return object.Resource{
		Group: kind.Group, Version: kind.Version, Plural: plural.Resource, Kind: kind.Kind, Namespaced: namespaced,
	}, true
}

// builtinKindOf returns the kind of a type of k8s.io/api, which is a struct or a pointer
// to one.
func builtinKindOf(typ reflect.Type) (schema.GroupVersionKind, bool) {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	path, ok := strings.CutPrefix(typ.PkgPath(), "k8s.io/api/")
	if !ok {
		return schema.GroupVersionKind{}, false
	}
	folder, version, _ := strings.Cut(path, "/")
	group, ok := builtinFolders[folder]
	kind := schema.GroupVersionKind{Group: group, Version: version, Kind: typ.Name()}
	return kind, ok && Builtin(kind.GroupKind())
}
