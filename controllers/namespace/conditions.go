// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
)

// The conditions of a namespace that is being deleted, when there is nothing to
// complain of. Tools and people read types, reasons and messages.
//
// Source: k8s.io/kubernetes/pkg/controller/namespace/deletion, status_condition_utils.go.
var allWell = []corev1.NamespaceCondition{
	{
		Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionFalse,
		Reason: "ResourcesDiscovered", Message: "All resources successfully discovered",
	},
	{
		Type: corev1.NamespaceDeletionGVParsingFailure, Status: corev1.ConditionFalse,
		Reason: "ParsedGroupVersions", Message: "All legacy kube types successfully parsed",
	},
	{
		Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionFalse,
		Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization",
	},
	{
		Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionFalse,
		Reason: "ContentRemoved", Message: "All content successfully removed",
	},
	{
		Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionFalse,
		Reason: "ContentHasNoFinalizers", Message: "All content-preserving finalizers finished",
	},
}

// conditions returns the five conditions with what was found, without times.
func (f *findings) conditions() []corev1.NamespaceCondition {
	all := slices.Clone(allWell)
	complain := func(kind corev1.NamespaceConditionType, reason, message string) {
		at := slices.IndexFunc(all, func(c corev1.NamespaceCondition) bool { return c.Type == kind })
		all[at].Status, all[at].Reason, all[at].Message = corev1.ConditionTrue, reason, message
	}
	if f.discovery != nil {
		message := f.discovery.Error()
		if partial, ok := errors.AsType[*client.DiscoveryError](f.discovery); ok {
			message = fmt.Sprintf("Discovery failed for some groups, %d failing: %v", len(partial.Failed), f.discovery)
		}
		complain(corev1.NamespaceDeletionDiscoveryFailure, "DiscoveryFailed", message)
	}
	if len(f.failures) > 0 {
		texts := make([]string, 0, len(f.failures))
		for _, err := range f.failures {
			texts = append(texts, err.Error())
		}
		complain(corev1.NamespaceDeletionContentFailure, "ContentDeletionFailed",
			fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(texts), inOrder(texts)))
	}
	if kinds := f.kindsLeft(); len(kinds) > 0 {
		complain(corev1.NamespaceContentRemaining, "SomeResourcesRemain", "Some resources are remaining: "+inOrder(kinds))
	}
	if finalizers := f.finalizersLeft(); len(finalizers) > 0 {
		complain(corev1.NamespaceFinalizersRemaining, "SomeFinalizersRemain",
			"Some content in the namespace has finalizers remaining: "+inOrder(finalizers))
	}
	return all
}

// inOrder writes a list so that the same list is the same text.
func inOrder(texts []string) string {
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

func (f *findings) kindsLeft() []string {
	var all []string
	for _, l := range f.left {
		// The dot stands also where there is no group.
		all = append(all, fmt.Sprintf("%s.%s has %d resource instances", l.resource.Plural, l.resource.Group, l.count()))
	}
	return all
}

func (f *findings) finalizersLeft() []string {
	total := map[string]int{}
	for _, l := range f.left {
		for finalizer, count := range l.finalizers {
			total[finalizer] += count
		}
	}
	var all []string
	for finalizer, count := range total {
		all = append(all, fmt.Sprintf("%s in %d resource instances", finalizer, count))
	}
	return all
}

// withConditions returns the conditions that a namespace has with some of them set,
// and whether that changes anything. The time of a condition is that of its last
// change of status. present is not changed.
func withConditions(present, set []corev1.NamespaceCondition, now metav1.Time) ([]corev1.NamespaceCondition, bool) {
	all, changed := slices.Clone(present), false
	for _, condition := range set {
		condition.LastTransitionTime = now
		at := slices.IndexFunc(all, func(c corev1.NamespaceCondition) bool { return c.Type == condition.Type })
		if at < 0 {
			all, changed = append(all, condition), true
			continue
		}
		if all[at].Status == condition.Status {
			condition.LastTransitionTime = all[at].LastTransitionTime
		}
		if all[at] != condition {
			all[at], changed = condition, true
		}
	}
	return all, changed
}
