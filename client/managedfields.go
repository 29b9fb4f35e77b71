// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/object"
)

// dropManagedFields is the parameter of a media type that requests answers without
// metadata.managedFields. A server that leaves them out does not confirm it.
//
// API servers whose gate ManagedFieldsOptOut is off, and those of Kubernetes 1.37 and
// older, which have no such gate, ignore the parameter as any other that they do not know.
//
// Source: KEP-5958, and k8s.io/apiserver/pkg/endpoints/handlers/negotiation from v0.38 on.
const dropManagedFields = ";drop=metadata.managedFields"

// stream begins a list or a watch. If the server refuses to leave managedFields out,
// stream sends the request again with them. If that helps, later requests for kinds of
// that group and version include them at once: one server, perhaps an aggregated one that
// reads Accept headers in its own way, answers for all of these kinds.
func (c *Client) stream(ctx context.Context, r object.Resource, s Selection, request func(Selection) *Request) (*Stream, error) {
	served := schema.GroupVersion{Group: r.Group, Version: r.Version}
	if s.WithoutManagedFields {
		_, refused := c.whole.Load(served)
		s.WithoutManagedFields = !refused
	}
	stream, err := request(s).Stream(ctx)
	if err == nil || !s.WithoutManagedFields || !refusesForm(err) {
		return stream, err
	}
	s.WithoutManagedFields = false
	stream, err = request(s).Stream(ctx)
	if err == nil { // else the form was not what the server refused
		c.whole.Store(served, nil)
	}
	return stream, err
}

// refusesForm reports whether an error may be about the requested form, rather than about
// the objects.
func refusesForm(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusNotAcceptable, http.StatusUnsupportedMediaType, http.StatusBadRequest:
		return true
	}
	return false
}
