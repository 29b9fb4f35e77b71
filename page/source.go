// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"net/http"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/internal/managers"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
)

// Source has what the pages show. Its methods are safe for concurrent use.
type Source interface {
	// Overviews returns the states of all managers and of their loops. An error says why none is known.
	Overviews(ctx context.Context) (States, error)
	// Own returns the states of the managers in this process. It costs no request.
	Own() States
	// Record has what controllers did and why, those of all managers.
	Record() gather.Record
	// Client reads objects.
	Client() *client.Client
}

// States are the states of managers, and what is not known of them.
type States = managers.States

// State is the state of a manager, and where it serves its pages.
type State = managers.State

// Unread is a manager that did not answer.
type Unread = managers.Unread

// Of returns the source of a manager in this process, and of the other managers of the cluster that have announced
// themselves. It reads objects with the rights of the manager, and shows its client certificate to the others.
func Of(m *manager.Manager) Source {
	return managers.New(managers.Options{Client: m.Client(), Config: m.Config(), Own: m})
}

// Viewer is a user of the pages. A *serving.Viewer is one.
type Viewer interface {
	// MayGet reports whether the user may get an object. With a key without a name it reports whether the user may get
	// all objects of the kind in the namespace. After an error the right is not known.
	MayGet(ctx context.Context, r object.Resource, key object.Key) (bool, error)
}

// Everything is a user who may see all that the client of the source may read: the page of a user's own process.
func Everything(*http.Request) Viewer { return everything{} }

type everything struct{}

func (everything) MayGet(context.Context, object.Resource, object.Key) (bool, error) {
	return true, nil
}

// served is the user of a request as package serving knows it.
func served(r *http.Request) Viewer { return serving.ViewerOf(r) }
