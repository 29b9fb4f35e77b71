// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/setpoint-io/setpoint/wire"
)

// serveDiscovery answers what is no request for a resource, and reports whether the
// request was such a one.
func (s *Server) serveDiscovery(w http.ResponseWriter, r *http.Request) bool {
	aggregated := strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var body any
	switch root := parts[0]; {
	case r.URL.Path == "/version":
		body = version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.0-fake"}
	case r.URL.Path == "/healthz" || r.URL.Path == "/livez" || r.URL.Path == "/readyz":
		_, _ = w.Write([]byte("ok"))
		return true
	case root != "api" && root != "apis":
		return false
	case len(parts) == 1 && aggregated:
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		body = s.aggregated(root == "api")
	case len(parts) == 1 && root == "api":
		body = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: s.coreVersions()}
	case len(parts) == 1:
		body = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: s.groups()}
	case len(parts) == 2 && root == "apis":
		i := slices.IndexFunc(s.groups(), func(g metav1.APIGroup) bool { return g.Name == parts[1] })
		if i < 0 {
			return false
		}
		body = s.groups()[i]
	case len(parts) == 2 && root == "api":
		return s.serveVersion(w, schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && root == "apis":
		return s.serveVersion(w, schema.GroupVersion{Group: parts[1], Version: parts[2]})
	default:
		return false
	}
	writeJSON(w, body)
	return true
}

func writeJSON(w http.ResponseWriter, body any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", wire.JSON.MediaType())
	}
	_ = json.NewEncoder(w).Encode(body) // a client that is gone misses nothing
}

// served returns what is served, in the order of Serve.
func (s *Server) served() []*Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.resources)
}

// verbs are those of most resources.
var verbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// subresources returns those that a resource has.
func (r *Resource) subresources() []string {
	return slices.DeleteFunc([]string{"finalize", "scale", "status"}, func(name string) bool { return !r.has(name) })
}

// aggregated describes the core group, or all others, in one answer.
func (s *Server) aggregated(core bool) apidiscovery.APIGroupDiscoveryList {
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	for _, r := range s.served() {
		if (r.Group == "") != core {
			continue
		}
		described := apidiscovery.APIResourceDiscovery{
			Resource: r.Plural, ResponseKind: kindOf(r), Scope: apidiscovery.ScopeCluster, SingularResource: strings.ToLower(r.Kind), Verbs: r.verbs, ShortNames: r.shortNames,
		}
		if r.Namespaced {
			described.Scope = apidiscovery.ScopeNamespace
		}
		for _, name := range r.subresources() {
			described.Subresources = append(described.Subresources, apidiscovery.APISubresourceDiscovery{
				Subresource: name, ResponseKind: kindOf(r), Verbs: []string{"get", "patch", "update"},
			})
		}
		v := versionIn(&list, r)
		v.Resources = append(v.Resources, described)
	}
	return list
}

func kindOf(r *Resource) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// versionIn returns the place of a resource's group and version in a list, which is made.
func versionIn(list *apidiscovery.APIGroupDiscoveryList, r *Resource) *apidiscovery.APIVersionDiscovery {
	g := slices.IndexFunc(list.Items, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == r.Group })
	if g < 0 {
		g = len(list.Items)
		list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: r.Group}})
	}
	group := &list.Items[g]
	v := slices.IndexFunc(group.Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == r.Version })
	if v < 0 {
		v = len(group.Versions)
		group.Versions = append(group.Versions, apidiscovery.APIVersionDiscovery{Version: r.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
	}
	return &group.Versions[v]
}

func (s *Server) coreVersions() []string {
	var versions []string
	for _, r := range s.served() {
		if r.Group == "" && !slices.Contains(versions, r.Version) {
			versions = append(versions, r.Version)
		}
	}
	return versions
}

// groups describes the groups but the core one, for clients that do not know the
// aggregated form.
func (s *Server) groups() []metav1.APIGroup {
	groups := []metav1.APIGroup{}
	for _, of := range s.aggregated(false).Items {
		group := metav1.APIGroup{Name: of.Name}
		for _, v := range of.Versions {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: of.Name + "/" + v.Version, Version: v.Version})
		}
		group.PreferredVersion = group.Versions[0]
		groups = append(groups, group)
	}
	return groups
}

// serveVersion describes the resources of one version of a group.
func (s *Server) serveVersion(w http.ResponseWriter, v schema.GroupVersion) bool {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: v.String()}
	for _, r := range s.served() {
		if r.GroupVersion() != v {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Plural, SingularName: strings.ToLower(r.Kind), Namespaced: r.Namespaced, Kind: r.Kind, Verbs: r.verbs, ShortNames: r.shortNames,
		})
		for _, name := range r.subresources() {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.Plural + "/" + name, Namespaced: r.Namespaced, Kind: r.Kind, Verbs: metav1.Verbs{"get", "patch", "update"},
			})
		}
	}
	if len(list.APIResources) == 0 {
		return false
	}
	writeJSON(w, list)
	return true
}
