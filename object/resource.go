// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Resource is a kind of object as an API server serves it.
type Resource struct {
	Group      string // "" for the core group
	Version    string // "v1"
	Plural     string // "pods": the name in the URL
	Kind       string // "Pod": the name in the object
	Namespaced bool   // whether its objects live in namespaces
}

// String returns "pods" or "deployments.apps", as kubectl prints it.
func (r Resource) String() string {
	if r.Group == "" {
		return r.Plural
	}
	return r.Plural + "." + r.Group
}

// APIVersion returns "v1" or "apps/v1", as it stands in an object.
func (r Resource) APIVersion() string { return r.GroupVersion().String() }

// GroupVersion returns the group and version.
func (r Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// GroupVersionKind returns the kind with its group and version.
func (r Resource) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// GroupVersionResource returns the plural with its group and version.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
}

// Ref points to one object. With a UID it is an identity: it stops being true
// when the object is deleted, even if another takes the name.
type Ref struct {
	Group string
	Kind  string
	Key   Key
	UID   types.UID
}

// String returns "Pod team-a/web-1" or "Deployment.apps team-a/web". The UID is
// left out.
func (r Ref) String() string {
	kind := r.Kind
	if r.Group != "" {
		kind += "." + r.Group
	}
	return kind + " " + r.Key.String()
}
