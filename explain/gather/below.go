// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/watch/event"
)

// mostBelow is how many objects of a kind are read.
const mostBelow = 500

// query lists objects of a kind that may be below another one.
type query struct {
	resource       object.Resource
	labels, fields string
	selected       bool // what is found is below the object without being owned by it
}

var (
	pods        = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
	replicaSets = object.Resource{Group: "apps", Version: "v1", Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true}
	jobs        = object.Resource{Group: "batch", Version: "v1", Plural: "jobs", Kind: "Job", Namespaced: true}
	events      = object.Resource{Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}
)

// queriesFor returns where to look for what is below an object. Selectors keep the lists short.
func queriesFor(r object.Resource, o jsontree.Tree) []query {
	selector := selectorOf(o.At("spec", "selector"))
	switch r.Group + "/" + r.Kind {
	case "apps/Deployment":
		return []query{{resource: replicaSets, labels: selector}, {resource: pods, labels: selector}}
	case "apps/ReplicaSet", "apps/StatefulSet", "apps/DaemonSet", "batch/Job", "/ReplicationController":
		return []query{{resource: pods, labels: selector}}
	case "batch/CronJob":
		return []query{{resource: jobs}, {resource: pods, labels: "batch.kubernetes.io/job-name"}}
	case "/Service", "policy/PodDisruptionBudget":
		if selector == "" {
			return nil
		}
		return []query{{resource: pods, labels: selector, selected: true}}
	case "/Node":
		return []query{{resource: pods, fields: "spec.nodeName=" + o.Text("metadata", "name"), selected: true}}
	}
	if !r.Namespaced || r.Kind == "Pod" {
		return nil
	}
	apps := func(plural, kind string) query {
		return query{resource: object.Resource{Group: "apps", Version: "v1", Plural: plural, Kind: kind, Namespaced: true}}
	}
	return []query{apps("deployments", "Deployment"), apps("statefulsets", "StatefulSet"), apps("daemonsets", "DaemonSet"),
		{resource: replicaSets}, {resource: jobs}, {resource: pods}}
}

// selectorOf returns a label selector, which is an object of labels or has matchLabels and matchExpressions, as text.
func selectorOf(s jsontree.Tree) string {
	fields, _ := s.Value.(map[string]any)
	if own, structured := fields["matchLabels"].(map[string]any); structured || fields["matchExpressions"] != nil {
		fields = own // expressions would make the list shorter, and are not needed for it to be right
	}
	set := labels.Set{}
	for name := range fields {
		if value, isText := fields[name].(string); isText {
			set[name] = value
		}
	}
	return set.String()
}

// below returns what is below an object, each after its owner, and what could not be read.
func (g Gatherer) below(ctx context.Context, r object.Resource, key object.Key, state map[string]any) (all []explain.Part, unread []string) {
	o := jsontree.Tree{Value: state}
	var candidates []explain.Part
	chosen := map[string]bool{}
	for _, found := range g.lists(ctx, queriesFor(r, o), key.Namespace) {
		q := found.query
		if found.err != nil {
			unread = append(unread, fmt.Sprintf("%s below it: %v", q.resource.Plural, found.err))
			continue
		}
		if found.more {
			unread = append(unread, fmt.Sprintf("%s below it beyond the first %d", q.resource.Plural, mostBelow))
		}
		for _, item := range found.items {
			p := explain.Part{Object: identify(q.resource, item), State: item, Trouble: troubleOf(q.resource, item, time.Now())}
			chosen[string(p.Object.UID)] = q.selected
			candidates = append(candidates, p)
		}
	}
	owners, depth := []string{o.Text("metadata", "uid")}, 1
	known := map[string]bool{} // any user may write two objects that own each other
	for len(owners) > 0 {
		var next []string
		for _, p := range candidates {
			if known[string(p.Object.UID)] {
				continue
			}
			if depth == 1 && chosen[string(p.Object.UID)] || isOwned(p.State, owners) {
				p.Depth = depth
				known[string(p.Object.UID)] = true
				all, next = append(all, p), append(next, string(p.Object.UID))
			}
		}
		owners, depth = next, depth+1
	}
	return all, unread
}

// answered is the answer to a query.
type answered struct {
	query query
	items []map[string]any
	more  bool
	err   error
}

// lists returns the answers to queries, which it sends at the same time.
func (g Gatherer) lists(ctx context.Context, queries []query, namespace string) []answered {
	all := make([]answered, len(queries))
	var running sync.WaitGroup
	for i, q := range queries {
		running.Go(func() {
			items, more, err := list(ctx, g.Client, q, namespace)
			all[i] = answered{q, items, more, err}
		})
	}
	running.Wait()
	return all
}

func isOwned(state map[string]any, by []string) bool {
	for _, ref := range (jsontree.Tree{Value: state}).List("metadata", "ownerReferences") {
		for _, uid := range by {
			if ref.Text("uid") == uid {
				return true
			}
		}
	}
	return false
}

func identify(r object.Resource, state map[string]any) runs.Object {
	o := jsontree.Tree{Value: state}
	return runs.ObjectOf(object.Ref{Group: r.Group, Kind: r.Kind, UID: uidOf(state),
		Key: object.Key{Namespace: o.Text("metadata", "namespace"), Name: o.Text("metadata", "name")}})
}

func kindOf(r object.Resource) event.Kind {
	return event.Kind{Group: r.Group, Version: r.Version, Kind: r.Kind, Resource: r.Plural, Namespaced: r.Namespaced}
}

// Names returns the names of the first objects of a kind in a namespace, at most so many.
func (g Gatherer) Names(ctx context.Context, r object.Resource, namespace string, most int) (names []string, err error) {
	items, _, err := g.listMetadata(ctx, r, namespace, "", most)
	for _, item := range items {
		names = append(names, item.Name)
	}
	return names, err
}

// list returns the first objects of a query, and whether there are more. It requires no resourceVersion: with 0 a server
// ignores the limit.
func list(ctx context.Context, c *client.Client, q query, namespace string) (items []map[string]any, more bool, err error) {
	return trees(ctx, c.Request(http.MethodGet).Resource(q.resource).Namespace(namespace).Param("labelSelector", q.labels).Param("fieldSelector", q.fields).
		Param("limit", fmt.Sprint(mostBelow)), q.resource)
}
