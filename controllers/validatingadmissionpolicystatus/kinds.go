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
func kindsOf(policy *admissionv1.ValidatingAdmissionPolicy, from found) (kinds []schema.GroupVersionKind, u unknown) {
	if policy.Spec.MatchConstraints == nil {
		return nil, u
	}
	is := map[schema.GroupResource]string{}
	for _, s := range from.kinds {
		is[schema.GroupResource{Group: s.Group, Resource: s.Plural}] = s.Kind
	}
	for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
		n, found, silent := 0, map[string]bool{}, map[string]schema.GroupVersion{}
		for _, wanted := range resourcesOf(&rule.Rule) {
			kind := is[wanted.GroupResource()]
			found[wanted.Resource] = found[wanted.Resource] || kind != ""
			if kind != "" && n < mostKinds {
				kinds = append(kinds, wanted.GroupVersion().WithKind(kind))
				n++
			}
			if from.failed[wanted.GroupVersion()] != nil {
				silent[wanted.Resource] = wanted.GroupVersion()
			}
		}
		for _, resource := range slices.Sorted(maps.Keys(found)) {
			version, isSilent := silent[resource]
			switch {
			case found[resource]:
			case isSilent:
				u.cannotRead(version, resource, from.failed[version])
			default:
				u.notServed = append(u.notServed, resource)
			}
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int {
		return slices.Compare([]string{a.Group, a.Version, a.Kind}, []string{b.Group, b.Version, b.Kind})
	})
	return slices.Compact(kinds), u
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

// wereServed reports whether kinds were served when the policy was checked, as far as the kinds that the server serves now can say:
// all are kinds of Kubernetes, in a version that is served. A custom kind may have been defined since the check. A kind of Kubernetes
// comes with a new version of the server. If that is installed while no process runs, the kind is checked with the next generation of the
// policy, as upstream does it; to read the documents of all policies at each start would cost more than it is worth.
func wereServed(kinds []schema.GroupVersionKind, served []client.Served) bool {
	for _, kind := range kinds {
		// Discovery has a kind in one version alone. A kind that is served in one of the versions that were asked for is known, as in
		// schemas.with.
		isServed := slices.ContainsFunc(served, func(s client.Served) bool {
			return s.GroupVersionKind().GroupKind() == kind.GroupKind() && slices.Contains(kinds, s.GroupVersionKind())
		})
		if !isServed || !client.Builtin(kind.GroupKind()) {
			return false
		}
	}
	return true
}
