// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func (p *plan) account() []runtime.Object {
	return []runtime.Object{&corev1.ServiceAccount{TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: p.metadata}}
}

func typeMeta(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

// rules by namespace; those of the cluster are at "".
type rulesIn map[string][]rbacv1.PolicyRule

func (in rulesIn) add(namespace string, rules ...rbacv1.PolicyRule) {
	if len(rules) > 0 {
		in[namespace] = append(in[namespace], rules...)
	}
}

// rights returns roles and their bindings: first those of the cluster, then those of
// namespaces in their order.
func (p *plan) rights() []runtime.Object {
	in := rulesIn{}
	p.reading(in)
	in.add("", servingRights()...)
	p.writingEvents(in)
	p.leasing(in)
	var objects []runtime.Object
	for _, namespace := range slices.Sorted(maps.Keys(in)) {
		objects = append(objects, p.role(namespace, in[namespace])...)
	}
	return objects
}

// reading is the right to read what is watched.
func (p *plan) reading(in rulesIn) {
	w := p.config.Watch
	everything := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: readVerbs()}
	switch {
	case w.All && len(w.Namespaces) == 0:
		in.add("", everything)
	case w.All:
		// A role of the cluster with wildcards would be one for all namespaces.
		in.add("", readable(append(builtinInCluster(), p.ClusterScoped...))...)
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

func builtinInCluster() []string {
	var all []string
	for _, kind := range builtin.all {
		if scopeOf(kind) == inCluster {
			all = append(all, kind)
		}
	}
	return all
}

func readVerbs() []string { return []string{"get", "list", "watch"} }

// readable returns the rules to read kinds, one for each group.
func readable(kinds []string) []rbacv1.PolicyRule {
	groups := map[string][]string{}
	for _, kind := range kinds {
		plural, group := splitKind(kind)
		groups[group] = append(groups[group], plural)
	}
	var rules []rbacv1.PolicyRule
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		slices.Sort(groups[group])
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: slices.Compact(groups[group]), Verbs: readVerbs()})
	}
	return rules
}

// writingEvents is the right that the sink of Kubernetes Events needs: an Event is in the
// namespace of what it is about.
func (p *plan) writingEvents(in rulesIn) {
	create := rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}}
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
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}
}

// leasing is the right to hold the Lease. Creating one cannot be allowed by name.
func (p *plan) leasing(in rulesIn) {
	if p.lease == "" {
		return
	}
	const group, resource = "coordination.k8s.io", "leases"
	namespace, name, _ := strings.Cut(p.lease, "/")
	in.add(namespace,
		rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{name},
			Verbs: []string{"get", "watch", "update"},
		})
}

// role returns a role and its binding. They have the namespace of the watch in their name:
// a second watch may read the same namespaces.
func (p *plan) role(namespace string, rules []rbacv1.PolicyRule) []runtime.Object {
	version := rbacv1.SchemeGroupVersion.String()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: p.Namespace + ":" + p.Name, Labels: p.labels}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.Namespace, Name: p.Name}}
	if namespace == "" {
		return []runtime.Object{
			&rbacv1.ClusterRole{TypeMeta: typeMeta(version, "ClusterRole"), ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{
				TypeMeta: typeMeta(version, "ClusterRoleBinding"), ObjectMeta: meta, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			},
		}
	}
	return []runtime.Object{
		&rbacv1.Role{TypeMeta: typeMeta(version, "Role"), ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{
			TypeMeta: typeMeta(version, "RoleBinding"), ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		},
	}
}
