// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"encoding/json"
	"time"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/internal/managedfields"
	"github.com/setpoint-io/setpoint/object"
)

// Bounds of reading the versions of an object: how long it may take, and how many are read.
const (
	versionsPatience = time.Second
	mostVersions     = 200
)

// versions reads the versions of an object that the server still has in its watch cache, from the first of some versions on that is
// not too old, up to the present state. Each has the field managers of that time: a program that lost a field to a controller is only
// there. Without the right to watch, there are none.
// Source of how long versions are kept: k8s.io/apiserver/pkg/storage/cacher, eventFreshDuration.
func (g Gatherer) versions(ctx context.Context, r object.Resource, key object.Key, state map[string]any, from []string) (all []explain.Version) {
	ctx, cancel := context.WithTimeout(ctx, versionsPatience)
	defer cancel()
	until := (jsontree.Tree{Value: state}).Text("metadata", "resourceVersion")
	for _, version := range from {
		if all = g.versionsFrom(ctx, r, key, version, until); len(all) > 0 || ctx.Err() != nil {
			return all
		}
	}
	return nil
}

func (g Gatherer) versionsFrom(ctx context.Context, r object.Resource, key object.Key, from, until string) (all []explain.Version) {
	watched, err := g.Client.Watch(ctx, r, client.Selection{Namespace: key.Namespace, Fields: "metadata.name=" + key.Name, JSONOnly: true},
		client.WatchOptions{ResourceVersion: from, Timeout: versionsPatience, NoBookmarks: true})
	if err != nil {
		return nil // the answer says less
	}
	defer func() { _ = watched.Close() }() // it was read to its end, or nothing is left to be done about it
	for len(all) < mostVersions {
		event, err := watched.Next()
		if err != nil {
			return all
		}
		var state map[string]any
		if event.Type != "MODIFIED" && event.Type != "ADDED" || json.Unmarshal(event.Object, &state) != nil {
			return all // deleted, or the version is too old
		}
		v := explain.Version{Version: (jsontree.Tree{Value: state}).Text("metadata", "resourceVersion"), Managers: managedfields.Of(state)}
		if all = append(all, v); v.Version == until {
			return all
		}
	}
	return all
}
