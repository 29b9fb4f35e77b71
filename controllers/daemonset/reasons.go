// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/shortlist"
)

// mostNamed bounds the nodes that a reason names.
const mostNamed = 5

// Codes of the reasons why a DaemonSet does not have all the Pods that its template asks for.
const (
	codeBackOff       = "FailedPodBackOff"
	codeDeleted       = "DaemonSetIsDeleted"
	codeInvalid       = "SpecCannotBeUsed"
	codeNoNode        = "NoNodeFits"
	codeOnDelete      = "UpdatedOnDelete"
	codeRolloutWaits  = "RolloutWaits"
	codeSelectsAll    = "SelectsAllPods"
	codeTerminating   = "PodsTerminate"
	codeUnschedulable = "PodsUnschedulable"
)

// because adds a reason.
func (p *plan) because(code, text, ends string, params ...any) {
	p.reasons = append(p.reasons, controller.Reason{Code: code, Text: text, Params: controller.With(params...), Ends: ends})
}

// backsOff adds that a Pod that has failed is kept for a while.
func (p *plan) backsOff(v *view, one *pod, left time.Duration) {
	p.because(codeBackOff, "the Pod {pod} has failed again on node {node}, and is replaced at {time}", "the time comes, or the template changes",
		"pod", one.name, "node", one.node, "time", v.now.Add(left).UTC().Format(time.RFC3339))
}

// rolloutWaits adds that a rollout has reached its limit, and which nodes it waits for.
func (p *plan) rolloutWaits(field string, limit int32, nodes []string, young []*pod) {
	for _, one := range young {
		nodes = append(nodes, one.node)
	}
	if len(nodes) == 0 {
		return // the Pods of this step are under way
	}
	p.because(codeRolloutWaits, "the rollout waits for {count} {count?node|nodes} without an available Pod, and {field} is {limit}: {nodes}",
		"a Pod becomes available there", "count", len(nodes), "field", field, "limit", limit, "nodes", shortlist.Join(nodes, mostNamed))
}

// explain adds what the Pods and nodes say.
func (p *plan) explain(v *view) {
	if v.wanted() == 0 {
		p.because(codeNoNode, "none of {nodes} {nodes?node|nodes} fits the node selector, the affinity and the tolerations of the template",
			"a node or the template changes", "nodes", len(v.places))
	}
	var terminating, homeless []string
	message, outdated := "", 0
	for node, on := range v.pods {
		going := 0
		for _, one := range on {
			if one.deleting {
				going++
			} else if !v.revision.has(one) {
				outdated++
			}
			if one.homeless != "" {
				homeless = append(homeless, one.name)
				if message == "" || one.homeless < message {
					message = one.homeless
				}
			}
		}
		if going == len(on) && v.byName[node].run {
			terminating = append(terminating, node)
		}
	}
	if len(homeless) > 0 {
		p.because(codeUnschedulable, "{count} {count?Pod has|Pods have} no node: {message}", "the scheduler finds room", "count", len(homeless), "message", message)
	}
	if len(terminating) > 0 {
		slices.Sort(terminating)
		p.because(codeTerminating, "the Pods on {nodes} are being deleted, and their successors are created when they are gone",
			"the kubelets have stopped the Pods", "nodes", shortlist.Join(terminating, mostNamed))
	}
	if outdated > 0 && v.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		p.because(codeOnDelete, "{count} {count?Pod has|Pods have} an older template, and updateStrategy is OnDelete", "a user deletes what has an old template", "count", outdated)
	}
}
