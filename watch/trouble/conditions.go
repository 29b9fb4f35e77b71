// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trouble

import (
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/watch/event"
)

// rule says when a condition is bad.
type rule struct {
	name string
	// good is the status that it has when all is well, "True" or "False".
	good string
	// unknown says that Unknown is bad too. Most controllers write it while they work.
	unknown bool
	// only are the reasons for which it is bad; empty for all.
	only []string
	// never are reasons for which it is normal.
	never []string
	// patience is how long it is normal all the same.
	patience time.Duration
	// young is the patience with an object that has not been well yet.
	young time.Duration
	// minor conditions follow from others.
	minor bool
}

// rules are the conditions of kinds of Kubernetes, the most important first. A kind that is not
// here follows the conventions.
//
// Sources: k8s.io/api and the controllers that write them in k8s.io/kubernetes/pkg/controller;
// k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.
var rules = map[string][]rule{
	"Node.": {
		{name: "Ready", good: "True", unknown: true, young: slow},
		{name: "NetworkUnavailable", good: "False", young: slow},
		{name: "MemoryPressure", good: "False"},
		{name: "DiskPressure", good: "False"},
		{name: "PIDPressure", good: "False"},
	},
	"Deployment.apps": {
		{name: "Progressing", good: "True"},
		{name: "ReplicaFailure", good: "False"},
		{name: "Available", good: "True", patience: slow, minor: true},
	},
	"ReplicaSet.apps":        {{name: "ReplicaFailure", good: "False"}},
	"ReplicationController.": {{name: "ReplicaFailure", good: "False"}},
	"StatefulSet.apps":       {{name: "Progressing", good: "True"}},
	"Job.batch":              {{name: "Failed", good: "False"}},
	"HorizontalPodAutoscaler.autoscaling": {
		{name: "AbleToScale", good: "True", patience: slow},
		{name: "ScalingActive", good: "True", never: []string{"ScalingDisabled"}, patience: slow},
	},
	"PodDisruptionBudget.policy": {{name: "DisruptionAllowed", good: "True", only: []string{"SyncFailed"}}},
	"PersistentVolumeClaim.": {
		{name: "ControllerResizeError", good: "False"},
		{name: "NodeResizeError", good: "False"},
		{name: "ModifyVolumeError", good: "False"},
	},
	"PersistentVolume.": nil,
	"Namespace.": {
		{name: "NamespaceDeletionDiscoveryFailure", good: "False"},
		{name: "NamespaceDeletionGroupVersionParsingFailure", good: "False"},
		{name: "NamespaceDeletionContentFailure", good: "False"},
		{name: "NamespaceFinalizersRemaining", good: "False", patience: slow},
		{name: "NamespaceContentRemaining", good: "False", patience: slow, minor: true},
	},
	"CustomResourceDefinition.apiextensions.k8s.io": {
		{name: "NonStructuralSchema", good: "False"},
		{name: "NamesAccepted", good: "True"},
		{name: "KubernetesAPIApprovalPolicyConformant", good: "True"},
		{name: "Established", good: "True", never: []string{"Installing"}, minor: true},
	},
	"APIService.apiregistration.k8s.io":                       {{name: "Available", good: "True", young: slow}},
	"CertificateSigningRequest.certificates.k8s.io":           {{name: "Failed", good: "False"}},
	"FlowSchema.flowcontrol.apiserver.k8s.io":                 {{name: "Dangling", good: "False"}},
	"PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": nil,
}

// conventions are the conditions of all other kinds.
//
// Sources: the API conventions of Kubernetes; kstatus (sigs.k8s.io/cli-utils) for Stalled; and what
// widespread controllers write: Degraded (OpenShift), Synced and Healthy (Crossplane, Argo CD),
// Accepted (Gateway API), Succeeded (Knative, Tekton).
var conventions = []rule{
	{name: "Stalled", good: "False"},
	{name: "Degraded", good: "False"},
	{name: "Failed", good: "False"},
	{name: "Succeeded", good: "True"},
	{name: "Accepted", good: "True", patience: slow},
	{name: "Synced", good: "True", patience: slow},
	{name: "Ready", good: "True", patience: slow},
	{name: "Healthy", good: "True", patience: slow, minor: true},
	{name: "Available", good: "True", patience: slow, minor: true},
}

// ofPodConditions are the conditions of Pods that say something beside their containers.
var ofPodConditions = []rule{
	{name: "PodResizePending", good: "False", only: []string{"Infeasible"}},
	{name: "PodResizeInProgress", good: "False", only: []string{"Error"}},
	{name: "Ready", good: "True", never: []string{"PodCompleted"}, patience: slow, minor: true},
}

// rulesOf returns the rules of a kind.
func rulesOf(kind event.Kind) []rule {
	name := kind.Kind + "." + kind.Group
	if name == "Pod." {
		return ofPodConditions
	}
	if known, ok := rules[name]; ok {
		return known
	}
	return conventions
}

// IsBad reports whether a condition of a kind is bad with a status and a reason.
func IsBad(kind event.Kind, condition, status, reason string) bool {
	all := rulesOf(kind)
	i := slices.IndexFunc(all, func(r rule) bool { return r.name == condition })
	return i >= 0 && all[i].health(status, reason) == bad
}

func (r *rule) health(status, reason string) health {
	switch {
	case status == "" || status == r.good:
		return good
	case status == "Unknown" && !r.unknown:
		return unclear
	case len(r.only) > 0 && !slices.Contains(r.only, reason), slices.Contains(r.never, reason):
		return good
	}
	return bad
}

// ofConditions returns the signs of an object's conditions.
func ofConditions(kind event.Kind, o jsontree.Tree) []Sign {
	return conditionSigns(o, rulesOf(kind))
}

func conditionSigns(o jsontree.Tree, rules []rule) []Sign {
	conditions := o.List("status", "conditions")
	if len(rules) == 0 {
		return nil
	}
	signs := make([]Sign, 0, len(rules))
	for i := range rules {
		r := &rules[i]
		c := jsontree.Tree{}
		if at := slices.IndexFunc(conditions, func(c jsontree.Tree) bool { return c.Text("type") == r.name }); at >= 0 {
			c = conditions[at]
		}
		s := Sign{
			Name: "condition " + r.name, About: "condition " + r.name, sort: ofCondition, grade: 1, quiet: calm, minor: r.minor,
			Status: c.Text("status"), Reason: c.Text("reason"), Message: c.Text("message"), patience: r.patience,
		}
		s.health = r.health(s.Status, s.Reason)
		if s.health == bad && r.young > 0 && isYoung(o, c) {
			s.patience, s.young = r.young, true
		}
		if s.health == bad && isStale(o) {
			s.health = unclear
		}
		signs = append(signs, s)
	}
	return signs
}

// isYoung reports whether a condition has been as it is since its object was created, or nearly.
func isYoung(o, condition jsontree.Tree) bool {
	created, err := time.Parse(time.RFC3339, o.Text("metadata", "creationTimestamp"))
	if err != nil {
		return false
	}
	turned, err := time.Parse(time.RFC3339, condition.Text("lastTransitionTime"))
	return err == nil && turned.Sub(created) < slow
}

// isStale reports whether the status is of an older spec than the object has.
func isStale(o jsontree.Tree) bool {
	seen, generation := o.Number(-1, "status", "observedGeneration"), o.Number(-1, "metadata", "generation")
	return seen >= 0 && seen < generation
}
