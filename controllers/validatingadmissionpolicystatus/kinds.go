// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus

import (
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
)

// paramsOf returns the kind of the parameters of a policy. It is empty for a policy without.
func paramsOf(policy *admissionv1.ValidatingAdmissionPolicy) schema.GroupVersionKind {
	if policy.Spec.ParamKind == nil {
		return schema.GroupVersionKind{}
	}
	version, err := schema.ParseGroupVersion(policy.Spec.ParamKind.APIVersion)
	if err != nil {
		return schema.GroupVersionKind{}
	}
	return version.WithKind(policy.Spec.ParamKind.Kind)
}

// mostKinds is how many kinds of a rule are checked. Source:
// k8s.io/apiserver/pkg/admission/plugin/policy/validating, maxTypesToCheck.
const mostKinds = 10

// kindsOf returns the kinds that the rules of a policy name, sorted, and those resources that the
// server serves in no group of their rule. Rules with wildcards for groups or versions name none.
func kindsOf(policy *admissionv1.ValidatingAdmissionPolicy, served []client.Served) (kinds []schema.GroupVersionKind, missing []string) {
	if policy.Spec.MatchConstraints == nil {
		return nil, nil
	}
	is := map[schema.GroupResource]string{}
	for _, s := range served {
		is[schema.GroupResource{Group: s.Group, Resource: s.Plural}] = s.Kind
	}
	for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
		n, found := 0, map[string]bool{}
		for _, wanted := range resourcesOf(&rule.Rule) {
			kind := is[wanted.GroupResource()]
			found[wanted.Resource] = found[wanted.Resource] || kind != ""
			if kind != "" && n < mostKinds {
				kinds = append(kinds, wanted.GroupVersion().WithKind(kind))
				n++
			}
		}
		for _, resource := range slices.Sorted(maps.Keys(found)) {
			if !found[resource] {
				missing = append(missing, resource)
			}
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int {
		return slices.Compare([]string{a.Group, a.Version, a.Kind}, []string{b.Group, b.Version, b.Kind})
	})
	return slices.Compact(kinds), missing
}

// resourcesOf returns the resources of a rule, in the order of groups, versions and names.
func resourcesOf(rule *admissionv1.Rule) (all []schema.GroupVersionResource) {
	wildcard := func(s string) bool { return strings.Contains(s, "*") }
	if slices.ContainsFunc(rule.APIGroups, wildcard) || slices.ContainsFunc(rule.APIVersions, wildcard) {
		return nil
	}
	for _, group := range slices.Sorted(slices.Values(rule.APIGroups)) {
		for _, version := range slices.Sorted(slices.Values(rule.APIVersions)) {
			for _, resource := range slices.Sorted(slices.Values(rule.Resources)) {
				if !strings.ContainsAny(resource, "*/") {
					all = append(all, schema.GroupVersionResource{Group: group, Version: version, Resource: resource})
				}
			}
		}
	}
	return all
}
