// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/trouble"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Bounds of what is read around an object.
const (
	mostAbove = 4 // owners, each of the one before
	mostNodes = 4
)

var nodes = object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}

// owning returns the resource of a kind that owns objects; false for kinds that are not built in.
func owning(apiVersion, kind string) (object.Resource, bool) {
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		group, version = "", apiVersion
	}
	r := object.Resource{Group: group, Version: version, Kind: kind, Plural: strings.ToLower(kind) + "s", Namespaced: true}
	switch group + "/" + kind {
	case "apps/Deployment", "apps/ReplicaSet", "apps/StatefulSet", "apps/DaemonSet", "batch/Job", "batch/CronJob", "/ReplicationController", "/Pod", "/Service":
		return r, true
	}
	return r, false
}

// above returns the controllers that own an object: its own, that one's, and so on. An owner that cannot be read, or of a
// kind that is not built in, ends the list.
func (g Gatherer) above(ctx context.Context, namespace string, state map[string]any) (all []explain.Part) {
	for len(all) < mostAbove {
		var owner jsontree.Tree
		for _, ref := range (jsontree.Tree{Value: state}).List("metadata", "ownerReferences") {
			if ref.At("controller").Value == true {
				owner = ref
			}
		}
		r, known := owning(owner.Text("apiVersion"), owner.Text("kind"))
		if !known {
			return all
		}
		var err error
		if state, err = g.state(ctx, r, object.Key{Namespace: namespace, Name: owner.Text("name")}); err != nil || string(uidOf(state)) != owner.Text("uid") {
			return all
		}
		all = append(all, explain.Part{Object: identify(r, state), State: state, Trouble: troubleOf(r, state, time.Now())})
	}
	return all
}

// nodes returns the Nodes that are not ready, of those on which the Pod of the facts, or Pods below that are in trouble or
// being deleted, should run.
func (g Gatherer) nodes(ctx context.Context, facts *explain.Facts, kind event.Kind) (all []explain.Part) {
	depths := map[string]int{}
	var names []string
	add := func(state map[string]any, depth int) {
		name := (jsontree.Tree{Value: state}).Text("spec", "nodeName")
		if name != "" && !slices.Contains(names, name) {
			names, depths[name] = append(names, name), depth+1
		}
	}
	if kind.Group == "" && kind.Kind == "Pod" {
		add(facts.State, 0)
	}
	for _, p := range facts.Below {
		deleting := (jsontree.Tree{Value: p.State}).Text("metadata", "deletionTimestamp") != ""
		if p.Object.Kind == "Pod" && (len(p.Trouble) > 0 || deleting) {
			add(p.State, p.Depth)
		}
	}
	if kind.Kind == "Node" {
		return nil // it is the object itself
	}
	for _, name := range names[:min(len(names), mostNodes)] {
		state, err := g.state(ctx, nodes, object.Key{Name: name})
		if err != nil || state == nil {
			continue // a user who may not read Nodes learns from the Pods
		}
		ready := func(text string) bool { return strings.HasPrefix(text, "Ready ") }
		if texts := slices.DeleteFunc(trouble.Present(kindOf(nodes), state), func(text string) bool { return !ready(text) }); len(texts) > 0 {
			all = append(all, explain.Part{Object: identify(nodes, state), State: state, Trouble: texts, Depth: depths[name]})
		}
	}
	return all
}

// noticed returns the runs that the deletion of the object caused, of the controllers that created it. The record finds runs
// by what they wrote, and these did not write the object.
func (g Gatherer) noticed(ctx context.Context, facts *explain.Facts) (all []explain.Traced) {
	for i := range facts.Runs {
		creator := &facts.Runs[i].Run
		if !slices.ContainsFunc(creator.Writes, func(w runs.Write) bool { return w.Verb == "create" && isNamed(w.Object, facts.Object) }) {
			continue
		}
		found, err := g.Record.Newest(ctx, runs.Query{Controller: creator.Controller, Key: creator.Key})
		if err != nil {
			continue // the answer says less
		}
		for _, run := range found.Runs {
			at := slices.IndexFunc(run.Causes, func(c runs.Cause) bool { return c.Verb == workqueue.Deleted && isNamed(c.Object, facts.Object) })
			if at >= 0 {
				run.Origins = []runs.Origin{{Cause: run.Causes[at], NotKnown: runs.WrittenByOthers}}
				all = append(all, run)
			}
		}
	}
	return all
}

// isNamed reports whether an object has the kind and the name of another one.
func isNamed(a, b runs.Object) bool {
	return a.Group == b.Group && a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}
