// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/lease"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// rulesIn are rules by namespace; those of the cluster are at "".
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

// Roles returns the ClusterRole first, then the Roles in the order of their namespaces.
func (p *plan) Roles() []role {
	in := rulesIn{}
	p.reading(in)
	in.add("", serving.Rights()...)
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
		// A ClusterRole with wildcards would be a right in all namespaces.
		in.add("", readable(append(inClusterKinds(), p.ClusterScoped...))...)
		for _, namespace := range unique(w.Namespaces) {
			in.add(namespace, everything)
		}
	case len(w.Namespaces) == 0:
		in.add("", readable(p.kinds())...)
	default:
		var cluster, namespaced []string
		for _, kind := range p.kinds() {
			if whole, _, _ := splitObject(kind); scopeOf(whole) == inCluster || slices.Contains(p.ClusterScoped, whole) {
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

// kinds returns the kinds and objects that are watched. Without any it is pods, as on the command
// line.
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

// readable returns the rules to read kinds and objects: one for each group of kinds, and one for
// the objects of each kind. A server takes the name of an object from the field selector of a list
// or a watch. Source: k8s.io/apiserver/pkg/endpoints/request, RequestInfoFactory.NewRequestInfo.
func readable(all []string) []rbacv1.PolicyRule {
	groups, objects := map[string][]string{}, map[string][]string{}
	for _, name := range all {
		kind, object, named := splitObject(name)
		if named {
			objects[kind] = append(objects[kind], object)
			continue
		}
		plural, group := splitKind(kind)
		groups[group] = append(groups[group], plural)
	}
	var rules []rbacv1.PolicyRule
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		rule := to(group, "", "get", "list", "watch")
		rule.Resources = sorted(groups[group])
		rules = append(rules, rule)
	}
	for _, kind := range slices.Sorted(maps.Keys(objects)) {
		plural, group := splitKind(kind)
		rule := to(group, plural, "get", "list", "watch")
		rule.ResourceNames = sorted(objects[kind])
		rules = append(rules, rule)
	}
	return rules
}

// writingEvents is the right that the sink of Kubernetes Events needs: an Event is in the
// namespace of the object that it is about.
func (p *plan) writingEvents(in rulesIn) {
	var namespaces []string
	for _, s := range p.config.Sinks {
		if s.KubernetesEvents == nil {
			continue
		}
		if len(p.config.Watch.Namespaces) == 0 {
			in.add("", sink.EventRights())
			return
		}
		namespaces = append(namespaces, s.KubernetesEvents.NamespaceOf("")) // of objects without a namespace
		namespaces = append(namespaces, p.config.Watch.Namespaces...)
	}
	for _, namespace := range unique(namespaces) {
		in.add(namespace, sink.EventRights())
	}
}

// leasing is the right to hold the Lease.
func (p *plan) leasing(in rulesIn) {
	if namespace, name, ok := strings.Cut(p.Lease, "/"); ok {
		in.add(namespace, lease.Config{Key: object.Key{Namespace: namespace, Name: name}}.Rights()...)
	}
}
