// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller"
)

// Codes of the reasons why a namespace that is being deleted still exists.
const (
	codeContent    = "ContentRemains"
	codeFinalizers = "FinalizersRemain"
	codeDiscovery  = "KindsNotKnown"
	codeFailed     = "DeletionFailed"
	codeOthers     = "OtherFinalizers"
)

// reasons returns why the namespace still exists after a run.
func (f *findings) reasons(ns *corev1.Namespace) (all []controller.Reason) {
	add := func(code, text, ends string, params ...any) {
		all = append(all, controller.Reason{Code: code, Text: text, Params: controller.With(params...), Ends: ends})
	}
	if f.discovery != nil {
		add(codeDiscovery, "the kinds of an API group are not known, and the namespace may have objects of them: {error}",
			"the group is served, or its APIService is removed", "error", f.discovery)
	}
	if len(f.failures) > 0 {
		add(codeFailed, "objects of {kinds} {kinds?kind|kinds} could not be deleted: {error}", "the deletion succeeds", "kinds", len(f.failures), "error", f.failures[0])
	}
	finalizers := map[string]int{}
	for _, left := range f.left {
		for finalizer, n := range left.finalizers {
			finalizers[finalizer] += n
		}
	}
	// Before the content that they keep: their removal ends the wait.
	for _, finalizer := range slices.Sorted(maps.Keys(finalizers)) {
		add(codeFinalizers, "{count} {count?object of the namespace has|objects of the namespace have} the finalizer {finalizer}", "the program that serves the finalizer removes it",
			"count", finalizers[finalizer], "finalizer", finalizer)
	}
	for _, left := range f.left {
		add(codeContent, "{kind}: {count} {count?object is|objects are} left, of which {deleting} {deleting?is|are} being deleted", "they are gone",
			"count", left.count(), "kind", left.resource.String(), "deleting", left.deleting)
	}
	if f.nothing() {
		for _, finalizer := range ns.Finalizers {
			add(codeOthers, "the namespace is empty and has the finalizer {finalizer}", "the program that serves the finalizer removes it", "finalizer", finalizer)
		}
		for _, finalizer := range ns.Spec.Finalizers {
			if finalizer != corev1.FinalizerKubernetes {
				add(codeOthers, "the namespace is empty and has the finalizer {finalizer}", "the program that serves the finalizer removes it", "finalizer", finalizer)
			}
		}
	}
	return all
}
