// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// name gives a group its code and title, once all of its changes are known.
func (g *Group) name(namespace string) {
	short := shortName(g.Object, namespace)
	full := g.Object.Kind + " " + short
	if g.edit != nil {
		g.Code = g.codeOfEdit()
	}
	switch g.Code {
	case BeganDeletion:
		g.Title = "deletion of " + full
	case BeganCreation:
		g.Title = "creation of " + full
	case BeganStatus:
		g.Title = "status of " + full
	case BeganRollout:
		g.Title = "rollout of " + short
	case BeganScaling:
		g.Title = "scaling of " + short
	case BeganChange:
		g.Title = "change of " + full
	}
}

// codeOfEdit says what kind of beginning a change is.
func (g *Group) codeOfEdit() string {
	e := g.edit
	switch {
	case e.verb == workqueue.Deleted:
		return BeganDeletion
	case e.verb == workqueue.Added:
		return BeganCreation
	case !e.begins:
		return BeganStatus
	case e.owns("spec.template") && !e.owns("spec.replicas"), g.rollsOut():
		return BeganRollout
	case e.owns("spec.replicas") && !e.owns("spec.template"):
		return BeganScaling
	}
	// An author that owns both fields, as kubectl apply does, has changed some field that it owns.
	return BeganChange
}

// owns reports whether the author of a change owns a field or fields below it.
func (e *edit) owns(path string) bool {
	return e.author != nil && slices.ContainsFunc(e.author.Fields, func(p string) bool { return strings.HasPrefix(p, path) })
}

// rollsOut reports whether the changes of a group show a new template: a new ReplicaSet or ControllerRevision.
func (g *Group) rollsOut() bool {
	return slices.ContainsFunc(g.Changes, func(c Change) bool {
		return c.verb == "create" && c.Object.Group == "apps" && (c.Object.Kind == "ReplicaSet" || c.Object.Kind == "ControllerRevision")
	})
}

// shortName is the name of an object, with its namespace where the answer is about another one.
func shortName(o runs.Object, in string) string {
	if o.Namespace == "" || o.Namespace == in {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}
