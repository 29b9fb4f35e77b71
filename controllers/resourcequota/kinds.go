// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
)

var (
	deviceClasses = schema.GroupResource{Group: resourcev1.GroupName, Resource: "deviceclasses"}
	// What is served depends on the objects of these kinds.
	definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	apiServices = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
)

// ignored are kinds that no quota limits although they are in namespaces. Those that are not
// stored cannot be listed anyway.
// Source: k8s.io/kubernetes/pkg/quota/v1/install, ignoredResources.
var ignored = map[schema.GroupResource]bool{
	{Resource: "events"}:                         true,
	{Group: "events.k8s.io", Resource: "events"}: true,
}

func kindOf(r object.Resource) schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// kinds is what the server serves. The zero value is what is known before the first discovery.
// It does not change.
type kinds struct {
	served map[schema.GroupResource]client.Served
	failed *client.DiscoveryError
}

func kindsOf(set discovery.Set) kinds {
	k := kinds{served: map[schema.GroupResource]client.Served{}, failed: set.Unknown()}
	for _, s := range set.Served() {
		if _, known := k.served[kindOf(s.Resource)]; !known && s.Can("list") && s.Can("watch") {
			k.served[kindOf(s.Resource)] = s
		}
	}
	return k
}

// known reports whether anything was discovered.
func (k kinds) known() bool { return k.served != nil }

// resource returns a kind, if it is served and can be counted, or why not. gone is set if the
// server is certain not to serve the kind.
func (k kinds) resource(kind schema.GroupResource) (r object.Resource, gone bool, err error) {
	s, served := k.served[kind]
	switch {
	case !k.known():
		return r, false, fmt.Errorf("the kinds of the server are not known yet")
	case ignored[kind]:
		return r, false, fmt.Errorf("quotas do not limit %s", kind)
	case served && kind == deviceClasses:
		return s.Resource, false, nil
	case served && !s.Namespaced:
		return r, false, fmt.Errorf("%s are not in namespaces", kind)
	case served && s.Can("create") && s.Can("delete"):
		return s.Resource, false, nil
	case served:
		return r, false, fmt.Errorf("%s cannot be created and deleted", kind)
	}
	if k.failed != nil {
		for version, err := range k.failed.Failed {
			if version.Group == kind.Group {
				return r, false, fmt.Errorf("discovering the kinds of %s: %w", version, err)
			}
		}
	}
	return r, true, fmt.Errorf("the server does not serve %s", kind)
}
