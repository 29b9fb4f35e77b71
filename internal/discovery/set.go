// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Set is the kinds that a server serves, each in one version. It never changes. The zero
// Set is what is known before the first discovery.
type Set struct {
	served  []client.Served
	unknown *client.DiscoveryError
}

// With returns the set after a discovery, whose results are found and err. A
// [client.DiscoveryError] lists the versions of groups that could not be described: their
// kinds stay as they were, even if another version of them was found. Any other error, and
// a server that serves nothing, says nothing about kinds: the set stays as it was, and ok
// is false.
func (s Set) With(found []client.Served, err error) (now Set, ok bool) {
	switch {
	case err == nil && len(found) > 0:
		return Set{served: found}, true
	case !errors.As(err, &now.unknown):
		return s, false
	}
	// Kinds that were there keep their order: where two groups have kinds of one name, the
	// first one is meant.
	for _, was := range s.served {
		if now.IsUnknown(was.GroupVersion()) {
			now.served = append(now.served, was)
		} else if at := slices.IndexFunc(found, func(is client.Served) bool { return id(is) == id(was) }); at >= 0 {
			now.served = append(now.served, found[at])
		}
	}
	for _, is := range found {
		if !slices.ContainsFunc(now.served, func(known client.Served) bool { return id(known) == id(is) }) {
			now.served = append(now.served, is)
		}
	}
	return now, len(now.served) > 0
}

func id(s client.Served) schema.GroupResource {
	return schema.GroupResource{Group: s.Group, Resource: s.Plural}
}

// Served returns the kinds, in the order of the server. The slice is read-only.
func (s Set) Served() []client.Served { return s.served }

// Unknown returns what the last discovery could not find out, nil if it found out
// everything.
func (s Set) Unknown() *client.DiscoveryError { return s.unknown }

// IsUnknown reports whether the last discovery could not find out which kinds a version of
// a group has.
func (s Set) IsUnknown(v schema.GroupVersion) bool {
	return s.unknown != nil && s.unknown.Failed[v] != nil
}

// Where returns the kinds for which keep returns true, by group and kind. Of several
// resources of one kind, the first counts.
func (s Set) Where(keep func(client.Served) bool) map[schema.GroupKind]object.Resource {
	kept := map[schema.GroupKind]object.Resource{}
	for _, k := range s.served {
		group := k.GroupVersionKind().GroupKind()
		if _, known := kept[group]; !known && keep(k) {
			kept[group] = k.Resource
		}
	}
	return kept
}

// Once returns the kinds without those whose objects another kind has too: the Events of
// the core group are those of events.k8s.io. Where the server has no Events in the core
// group, the other ones stay.
func Once(served []client.Served) []client.Served {
	events := func(s client.Served, group string) bool { return s.Group == group && s.Plural == "events" }
	twice := slices.ContainsFunc(served, func(s client.Served) bool { return events(s, "") })
	once := make([]client.Served, 0, len(served))
	for _, s := range served {
		if !twice || !events(s, "events.k8s.io") {
			once = append(once, s)
		}
	}
	return once
}
