// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"net/http"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
)

// Source has what the pages show. Its methods are safe for concurrent use.
type Source interface {
	// Overview returns the state of the manager and of its loops. An error says why it is not known.
	Overview(ctx context.Context) (manager.Overview, error)
	// Record has what controllers did and why.
	Record() gather.Record
	// Client reads objects.
	Client() *client.Client
}

// Of returns the source of a manager in this process. It reads objects with the rights of the manager.
func Of(m *manager.Manager) Source { return local{m} }

type local struct{ manager *manager.Manager }

// Overview implements Source.
func (l local) Overview(context.Context) (manager.Overview, error) { return l.manager.Overview(), nil }

// Record implements Source.
func (l local) Record() gather.Record { return gather.Local(l.manager.Runs()) }

// Client implements Source.
func (l local) Client() *client.Client { return l.manager.Client() }

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
