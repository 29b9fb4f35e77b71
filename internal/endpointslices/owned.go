// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslices

import (
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// Informer is an informer of EndpointSlices.
type Informer = cache.SharedInformer[*discoveryv1.EndpointSlice]

// Owned finds the slices that a controller manages, by Service.
type Owned struct {
	byService cache.Index[*discoveryv1.EndpointSlice]
	manager   string
}

// serviceIndex is the identity of the index of slices by manager and Service. Controllers
// that share an informer share the index.
type serviceIndex struct{}

// NewOwned adds the index that it needs to an informer. manager is what stands in the
// label managed-by of the slices.
func NewOwned(informer Informer, manager string) *Owned {
	byService := cache.SharedIndex(informer, serviceIndex{}, func(item cache.Item[*discoveryv1.EndpointSlice]) ([]string, error) {
		m := item.Meta()
		name, manager := m.Labels.Get(discoveryv1.LabelServiceName), m.Labels.Get(discoveryv1.LabelManagedBy)
		if name == "" || manager == "" {
			return nil, nil
		}
		return []string{place(manager, object.Key{Namespace: m.Namespace, Name: name})}, nil
	})
	return &Owned{byService, manager}
}

func place(manager string, service object.Key) string { return manager + "/" + service.String() }

// service returns the Service that a slice is of, or the zero Key if it is another
// manager's.
func (o *Owned) service(m object.Meta) object.Key {
	name := m.Labels.Get(discoveryv1.LabelServiceName)
	if name == "" || m.Labels.Get(discoveryv1.LabelManagedBy) != o.manager {
		return object.Key{}
	}
	return object.Key{Namespace: m.Namespace, Name: name}
}

// Of returns the slices of a Service in the order of their names, without those that
// are being deleted. They are shared and read-only.
func (o *Owned) Of(service object.Key) ([]*discoveryv1.EndpointSlice, error) {
	var all []*discoveryv1.EndpointSlice
	for _, item := range o.byService.Find(place(o.manager, service)) {
		if item.Meta().Deleting() {
			continue
		}
		slice, err := item.Object()
		if err != nil {
			return nil, fmt.Errorf("reading the EndpointSlices of %s: %w", service, err)
		}
		all = append(all, slice)
	}
	slices.SortFunc(all, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Wakes adds the Service of a slice. It is the mapping of a controller.Watches.
func (o *Owned) Wakes(slice cache.Item[*discoveryv1.EndpointSlice], add func(object.Key)) {
	if service := o.service(slice.Meta()); !service.IsZero() {
		add(service)
	}
}
