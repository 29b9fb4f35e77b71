// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
)

// isDiscovery reports whether a path asks which resources there are.
func isDiscovery(path string) bool { return path == "/api" || path == "/apis" }

// discovery is the answer, in the form of all groups at once.
func discovery(path string, resources ...object.Resource) apidiscovery.APIGroupDiscoveryList {
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	for _, r := range resources {
		if (r.Group == "") != (path == "/api") {
			continue
		}
		scope := apidiscovery.ScopeCluster
		if r.Namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{
			ObjectMeta: metav1.ObjectMeta{Name: r.Group},
			Versions: []apidiscovery.APIVersionDiscovery{{
				Version: r.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
				Resources: []apidiscovery.APIResourceDiscovery{{
					Resource: r.Plural, ResponseKind: &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}, Scope: scope,
					Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
				}},
			}},
		})
	}
	return list
}
