// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/nearest"
	"github.com/setpoint-io/setpoint/internal/pause"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

var namespaces = object.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"}

// absentPause is the pause before a namespace is looked for again after an error.
const absentPause = 10 * time.Second

// awaitNamespaces logs which of the namespaces do not exist, and when they are created: a name with
// a mistake in it has no objects, and would only be silent. It returns at once. An account that may
// not read namespaces gets no such log.
func (w *Watch) awaitNamespaces(ctx context.Context) {
	for _, name := range w.options.Namespaces {
		w.tasks.Go(func() {
			missing := false
			for ctx.Err() == nil {
				exists, err := w.awaitNamespace(ctx, name, &missing)
				if exists || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
					return
				}
				pause.For(ctx, absentPause)
			}
		})
	}
}

// awaitNamespace returns whether a namespace exists. If it does not, that is logged, and awaitNamespace
// waits for it as long as the server keeps its watch open.
func (w *Watch) awaitNamespace(ctx context.Context, name string, missing *bool) (exists bool, err error) {
	c := client.For[*corev1.Namespace](w.host.Client())
	_, err = c.Get(ctx, object.Key{Name: name})
	if err == nil {
		w.namespaceExists(name, *missing)
		return true, nil
	}
	if !apierrors.IsNotFound(err) {
		return false, err
	}
	if !*missing {
		*missing = true
		attributes := []any{"namespace", name}
		if near := w.nearNamespace(ctx, name); near != "" {
			attributes = append(attributes, "didYouMean", near)
		}
		w.log.Warn("a namespace does not exist; its objects are published once it is created", attributes...)
	}
	// A watch without a version begins with what is there.
	stream, err := w.host.Client().Watch(ctx, namespaces, client.Selection{Fields: "metadata.name=" + name, MetadataOnly: true}, client.WatchOptions{Timeout: definitionsTurn})
	if err != nil {
		return false, err
	}
	defer func() { _ = stream.Close() }()
	for {
		e, err := stream.Next()
		if err != nil {
			return false, err
		}
		if e.Type == wire.Added || e.Type == wire.Modified {
			w.namespaceExists(name, true)
			return true, nil
		}
	}
}

// namespaceExists logs that a namespace that was missing exists, at the level at which it was missing.
func (w *Watch) namespaceExists(name string, missing bool) {
	if missing {
		w.log.Warn("the namespace exists now", "namespace", name)
	}
}

// nearNamespace returns the namespace that was probably meant, or "".
func (w *Watch) nearNamespace(ctx context.Context, name string) string {
	var names []string
	all, _, err := client.For[*corev1.Namespace](w.host.Client()).List(ctx, client.Selection{})
	if err != nil {
		return "" // the right to read one does not include that to list all
	}
	for _, n := range all {
		names = append(names, n.Name)
	}
	return nearest.Name(name, names)
}

// sayAbsent logs that the only object that is followed is not there. A user who separates kinds by a
// space, as in "pods services", names an object by the second one.
func (f *follower) sayAbsent() {
	attributes := []any{"kind", f.kind.String(), "namespace", f.selection.Namespace, "name", f.object}
	f.watch.mu.Lock()
	served := f.watch.kinds.Served()
	f.watch.mu.Unlock()
	if _, err := FindKind(served, f.object); !errors.As(err, new(*UnknownKindError)) {
		attributes = append(attributes, "ifItIsAKind", fmt.Sprintf("write %s,%s", f.kind.Resource, f.object))
	}
	f.watch.log.Warn("there is no object of this name; it is published once it is created", attributes...)
}
