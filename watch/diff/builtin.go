// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/setpoint-io/setpoint/watch/event"
)

// Builtin returns the schema of a kind that Kubernetes has a Go type for, and whether
// there is one. It reads the type anew at each call: make it once for a kind.
func Builtin(kind event.Kind) (Schema, bool) {
	t, ok := scheme.Scheme.AllKnownTypes()[schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}]
	if !ok {
		return Schema{}, false
	}
	return Schema{root: make(reading).value(t)}, true
}

// Generic returns the schema of which nothing but the metadata is known.
func Generic() Schema {
	return Schema{root: &node{fields: map[string]*node{"metadata": metadata()}}}
}

func metadata() *node { return make(reading).value(reflect.TypeFor[metav1.ObjectMeta]()) }

// untagged are the lists whose struct tags do not say how a server merges them: those
// with several keys, of which a tag can hold one, and those that came after strategic merge
// patches. They are named by the Go type and the field.
// Source: listType and listMapKey in the comments of k8s.io/api and apimachinery, as
// compiled into k8s.io/client-go/applyconfigurations/internal. A test holds all of it
// against the schemas made here.
var untagged = map[string][]string{
	"Container.ports":                                      {"containerPort", "protocol"},
	"EphemeralContainerCommon.ports":                       {"containerPort", "protocol"},
	"ServiceSpec.ports":                                    {"port", "protocol"},
	"PodSpec.topologySpreadConstraints":                    {"topologyKey", "whenUnsatisfiable"},
	"ResourceRequirements.claims":                          {"name"},
	"ResourceStatus.resources":                             {"resourceID"},
	"ResourceClaimStatus.devices":                          {"driver", "device", "pool", "shareID"},
	"StorageVersionStatus.storageVersions":                 {"apiServerID"},
	"PodStatus.volumeHealth":                               {"name"},
	"VolumeHealthStatus.healthConditions":                  {"status", "reason"},
	"PodVolumeHealth.healthConditions":                     {"status", "reason"},
	"WorkloadSpec.podGroupTemplates":                       {"name"},
	"WorkloadSpec.compositePodGroupTemplates":              {"name"},
	"CompositePodGroupTemplate.compositePodGroupTemplates": {"name"},
	"CompositePodGroupTemplate.podGroupTemplates":          {"name"},
	// These are atomic for a server, and changed one address at a time by their controller.
	"EndpointSubset.addresses":         {"ip"},
	"EndpointSubset.notReadyAddresses": {"ip"},
}

// untaggedSets are the sets that have no tag, in the same way and from the same source.
var untaggedSets = map[string]bool{
	"ValidatingAdmissionPolicyBindingSpec.validationActions": true,
	"ServerStorageVersion.decodableVersions":                 true,
	"ServerStorageVersion.servedVersions":                    true,
	"PodFailurePolicyOnExitCodesRequirement.values":          true,
	"UncountedTerminatedPods.succeeded":                      true,
	"UncountedTerminatedPods.failed":                         true,
	"ContainerRestartRuleOnExitCodes.values":                 true,
	"NodeAllocatableResourceClaimStatus.containers":          true,
	"NodePodPreemptionPolicy.disableResizePreemption":        true,
	"VolumeMount.bindMountOptions":                           true,
	"DeviceRequestAllocationResult.skipNodeOperations":       true,
	"ResourceSliceSpec.skipNodeOperations":                   true,
	"NodeSpec.podCIDRs":                                      true,
	"Endpoint.addresses":                                     true,
	"NonResourcePolicyRule.nonResourceURLs":                  true,
	"NonResourcePolicyRule.verbs":                            true,
	"ResourcePolicyRule.apiGroups":                           true,
	"ResourcePolicyRule.namespaces":                          true,
	"ResourcePolicyRule.resources":                           true,
	"ResourcePolicyRule.verbs":                               true,
	"CSIDriverSpec.volumeLifecycleModes":                     true,
}

// reading remembers the structs that were read, so that each is read once and one that
// contains itself ends.
type reading map[reflect.Type]*node

// value returns the node of a type, nil for one without lists to know of.
func (r reading) value(t reflect.Type) *node {
	switch t.Kind() { //nolint:exhaustive // everything else is a scalar
	case reflect.Pointer:
		return r.value(t.Elem())
	case reflect.Map, reflect.Slice, reflect.Array:
		each := r.value(t.Elem())
		if each == nil {
			return nil
		}
		return &node{each: each}
	case reflect.Struct:
		if n, ok := r[t]; ok {
			return n
		}
		n := &node{fields: map[string]*node{}}
		r[t] = n
		r.fields(n, t)
		return n
	}
	return nil
}

// fields adds the fields of a struct, and those of the structs embedded in it.
func (r reading) fields(n *node, t reflect.Type) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && (name == "" || strings.Contains(options, "inline")) {
			if inner := deref(f.Type); inner.Kind() == reflect.Struct {
				r.fields(n, inner)
			}
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		if child := r.member(t, f, name); child != nil {
			n.fields[name] = child
		}
	}
}

// member returns the node of a field; its tags tell more than its type.
func (r reading) member(owner reflect.Type, f reflect.StructField, name string) *node {
	t := deref(f.Type)
	if t.Kind() != reflect.Slice {
		return r.value(t)
	}
	list := node{each: r.value(t.Elem())}
	what := owner.Name() + "." + name
	merges := strings.Contains(f.Tag.Get("patchStrategy"), "merge")
	switch key := f.Tag.Get("patchMergeKey"); {
	case untagged[what] != nil:
		list.keys = untagged[what]
	case untaggedSets[what]:
		list.set = true
	case merges && key != "":
		list.keys = []string{key}
	case merges && deref(t.Elem()).Kind() != reflect.Struct:
		list.set = true
	case name == "conditions" && list.each != nil:
		list.keys = []string{"type"} // most types have a tag that says so, the others only a comment
	case list.each == nil:
		return nil
	}
	return &list
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
