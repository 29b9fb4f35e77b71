// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslices

import (
	"context"
	"fmt"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Changes are what has to be written of the slices of one Service.
type Changes struct {
	Create []*discoveryv1.EndpointSlice
	Update []*discoveryv1.EndpointSlice
	Delete []*discoveryv1.EndpointSlice // as the informer has them
}

// Add adds other changes.
func (c *Changes) Add(other Changes) {
	c.Create = append(c.Create, other.Create...)
	c.Update = append(c.Update, other.Update...)
	c.Delete = append(c.Delete, other.Delete...)
}

// Count returns how many writes there are.
func (c *Changes) Count() int { return len(c.Create) + len(c.Update) + len(c.Delete) }

// Recycle makes updates of pairs of a create and a delete. usable chooses the slices to
// be deleted that may be used again; the type of addresses must be the same in any case,
// because the server refuses to change it.
func (c *Changes) Recycle(usable func(*discoveryv1.EndpointSlice) bool) {
	left := c.Create[:0:0]
	for _, slice := range c.Create {
		at := slices.IndexFunc(c.Delete, func(old *discoveryv1.EndpointSlice) bool {
			return old.AddressType == slice.AddressType && usable(old)
		})
		if at < 0 {
			left = append(left, slice)
			continue
		}
		old := c.Delete[at]
		c.Delete = slices.Delete(slices.Clone(c.Delete), at, at+1)
		slice.GenerateName, slice.Name = "", old.Name
		slice.UID, slice.ResourceVersion = old.UID, old.ResourceVersion
		c.Update = append(c.Update, slice)
	}
	c.Create = left
}

// Write writes the changes. What is new comes before what goes, so that an endpoint
// which moves is in two slices for a moment and never in none. It stops at the first
// error: what follows would be done on a state that is not what it seemed.
//
// What cannot be created because the namespace goes or is gone is left out. That a slice has
// changed or gone since the informer showed it is a conflict (apierrors.IsConflict). The metrics count
// each write that succeeded.
func (c *Changes) Write(ctx context.Context, to client.Typed[*discoveryv1.EndpointSlice], metrics *Metrics) error {
	for _, slice := range c.Create {
		_, err := to.Create(ctx, slice)
		if client.NamespaceGone(err) {
			break
		}
		if err != nil {
			return fmt.Errorf("creating an EndpointSlice: %w", err)
		}
		metrics.wrote(operationCreate)
	}
	for _, slice := range c.Update {
		_, err := to.Update(ctx, slice)
		if apierrors.IsNotFound(err) {
			// Another client deleted it, and its endpoints need another slice. The run
			// that has observed the deletion creates that, as after any other change from
			// outside.
			err = apierrors.NewConflict(discoveryv1.Resource("endpointslices"), slice.Name, err)
		}
		if err != nil {
			return fmt.Errorf("updating EndpointSlice %s: %w", object.KeyOf(slice), err)
		}
		metrics.wrote(operationUpdate)
	}
	for _, slice := range c.Delete {
		err := to.Delete(ctx, object.KeyOf(slice), client.IfUID(slice.UID))
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting EndpointSlice %s: %w", object.KeyOf(slice), err)
		}
		if err == nil {
			metrics.wrote(operationDelete)
		}
	}
	return nil
}

// nameMost is how long the beginning of a generated name may be.
// Source: k8s.io/apimachinery/pkg/util/validation, DNS1123SubdomainMaxLength.
const nameMost = 253

// Prefix returns what the names of the slices of a Service begin with.
func Prefix(service string) string {
	if len(service)+1 > nameMost {
		return service
	}
	return service + "-"
}
