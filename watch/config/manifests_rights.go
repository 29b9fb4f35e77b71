// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rules by namespace; those of the cluster are at "".
type rulesIn map[string][]rbacv1.PolicyRule

func (in rulesIn) add(namespace string, rules ...rbacv1.PolicyRule) {
	if len(rules) > 0 {
		in[namespace] = append(in[namespace], rules...)
	}
}

// role is a Role with its binding, or a ClusterRole if it has no namespace.
type role struct {
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// Roles returns first the one of the cluster, then those of namespaces in their order.
func (p *plan) Roles() []role {
	in := rulesIn{}
	p.reading(in)
	in.add("", servingRights()...)
	p.writingEvents(in)
	p.leasing(in)
	var roles []role
	for _, namespace := range slices.Sorted(maps.Keys(in)) {
		roles = append(roles, role{namespace, in[namespace]})
	}
	return roles
}

// reading is the right to read what is watched.
func (p *plan) reading(in rulesIn) {
	w := p.config.Watch
	everything := to("*", "*", "get", "list", "watch")
	switch {
	case w.All && len(w.Namespaces) == 0:
		in.add("", everything)
	case w.All:
		// A role of the cluster with wildcards would be one for all namespaces.
		in.add("", readable(append(inClusterKinds(), p.ClusterScoped...))...)
		for _, namespace := range unique(w.Namespaces) {
			in.add(namespace, everything)
		}
	case len(w.Namespaces) == 0:
		in.add("", readable(p.kinds())...)
	default:
		var cluster, namespaced []string
		for _, kind := range p.kinds() {
			if scopeOf(kind) == inCluster || slices.Contains(p.ClusterScoped, kind) {
				cluster = append(cluster, kind)
			} else {
				namespaced = append(namespaced, kind)
			}
		}
		in.add("", readable(cluster)...)
		for _, namespace := range unique(w.Namespaces) {
			in.add(namespace, readable(namespaced)...)
		}
	}
}

// kinds returns what is watched. Without any it is pods, as on the command line.
func (p *plan) kinds() []string {
	if len(p.config.Watch.Kinds) == 0 {
		return []string{"pods"}
	}
	return unique(p.config.Watch.Kinds)
}

// to is the right to do something with one resource.
func to(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// readable returns the rules to read kinds, one for each group.
func readable(kinds []string) []rbacv1.PolicyRule {
	groups := map[string][]string{}
	for _, kind := range kinds {
		plural, group := splitKind(kind)
		groups[group] = append(groups[group], plural)
	}
	var rules []rbacv1.PolicyRule
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		rule := to(group, "", "get", "list", "watch")
		rule.Resources = sorted(groups[group])
		rules = append(rules, rule)
	}
	return rules
}

// writingEvents is the right that the sink of Kubernetes Events needs: an Event is in the
// namespace of what it is about.
func (p *plan) writingEvents(in rulesIn) {
	create := to("events.k8s.io", "events", "create")
	var namespaces []string
	for _, s := range p.config.Sinks {
		if s.KubernetesEvents == nil {
			continue
		}
		if len(p.config.Watch.Namespaces) == 0 {
			in.add("", create)
			return
		}
		// About objects without a namespace.
		about := s.KubernetesEvents.ClusterNamespace
		if about == "" {
			about = metav1.NamespaceDefault
		}
		namespaces = append(namespaces, about)
		namespaces = append(namespaces, p.config.Watch.Namespaces...)
	}
	for _, namespace := range unique(namespaces) {
		in.add(namespace, create)
	}
}

// servingRights are what it takes to ask who somebody is that wants to see metrics, and
// whether he may.
func servingRights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		to("authentication.k8s.io", "tokenreviews", "create"),
		to("authorization.k8s.io", "subjectaccessreviews", "create"),
	}
}

// leasing is the right to hold the Lease. Creating one cannot be allowed by name.
func (p *plan) leasing(in rulesIn) {
	if p.Lease == "" {
		return
	}
	namespace, name, _ := strings.Cut(p.Lease, "/")
	named := to("coordination.k8s.io", "leases", "get", "watch", "update")
	named.ResourceNames = []string{name}
	in.add(namespace, to("coordination.k8s.io", "leases", "create"), named)
}
