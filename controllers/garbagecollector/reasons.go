// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// Codes of the reasons why an object that is being deleted still exists, or why one without owners is kept.
const (
	codeDependents = "DependentsBlockDeletion"
	codeFinalizers = "OtherFinalizers"
	codeUnknown    = "OwnerNotKnown"
)

// because states a reason about an object of the graph: the keys of the loop are UIDs.
func because(ctx context.Context, about target, code, text, ends string, params ...any) {
	controller.Because(ctx, controller.Reason{Code: code, Text: text, Params: controller.With(params...), Ends: ends, About: about.object()})
}

// object returns the target as the record of runs has objects.
func (t target) object() runs.Object {
	k := t.kind.Value()
	return runs.ObjectOf(object.Ref{Group: k.Group, Kind: k.Kind, Key: t.key, UID: t.uid})
}

// becauseDeleting states why an object that is being deleted still exists.
func (c *collector) becauseDeleting(ctx context.Context, v view) {
	if v.state.has(foreground) {
		c.mu.Lock()
		blocking := c.graph.blocking(v.uid)
		c.mu.Unlock()
		if len(blocking) == 0 {
			return
		}
		first := slices.MinFunc(blocking, func(a, b target) int { return strings.Compare(a.key.String(), b.key.String()) })
		because(ctx, v.target, codeDependents, "it is deleted in the foreground, and {count} {count?dependent with blockOwnerDeletion exists|dependents with blockOwnerDeletion exist}, among them {first}",
			"they are gone", "count", len(blocking), "first", first.object())
		return
	}
	m, shown := c.world.shown(v.target)
	if !shown || m.UID != v.uid {
		return
	}
	for _, finalizer := range m.Finalizers {
		if finalizer != metav1.FinalizerDeleteDependents && finalizer != metav1.FinalizerOrphanDependents {
			because(ctx, v.target, codeFinalizers, "it is being deleted and has the finalizer {finalizer}", "the program that serves the finalizer removes it",
				"finalizer", finalizer)
		}
	}
}

// becauseUnknown states that objects are kept for an owner that cannot be looked up.
func (c *collector) becauseUnknown(ctx context.Context, owner types.UID) {
	c.mu.Lock()
	claims := c.graph.unverified(owner)
	c.mu.Unlock()
	for _, claim := range claims {
		k := claim.kind.Value()
		because(ctx, claim.dependent, codeUnknown, "it is kept because its owner {kind} {name} of {apiVersion} cannot be looked up",
			"the kind is served, or the reference is removed", "kind", k.Kind, "name", claim.name, "apiVersion", k.GroupVersion())
	}
}
