// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	"github.com/setpoint-io/setpoint/runs"
)

// Codes of what the answer adds about Nodes. No controller states them: they come from the state of the Pod and the Nodes.
const (
	codeNodeRefuses  = "NodeDoesNotFit"
	codeNodeMayFit   = "NodeMayFit"
	codeNodesRefused = "MoreNodesDoNotFit"
)

// placement adds why each Node does not fit the Pod for which the scheduler has found none. It comes after the sentence, which repeats the
// scheduler: what a Node refuses is no reason of a controller.
func (t *teller) placement() {
	p := t.facts.Placement
	if p == nil {
		return
	}
	add := func(r runs.Reason) {
		t.answer.NotDone = append(t.answer.NotDone, NotDone{
			Controller: p.Scheduler, Key: p.Pod.Ref().Key.String(), Object: p.Pod, Reason: r, Text: r.String(), Since: p.Said,
		})
	}
	for i := range p.Nodes {
		node := &p.Nodes[i]
		pod := runs.Param{Name: "pod", Value: p.Pod.Kind + " " + p.Pod.Name}
		switch {
		case len(node.Refuses) > 0:
			add(runs.Reason{Code: codeNodeRefuses, Text: "it does not fit {pod}: {rules}", About: node.Node,
				Params: []runs.Param{pod, {Name: "rules", Value: joined(node.Refuses)}}})
		case node.MayFit != "":
			add(runs.Reason{Code: codeNodeMayFit, Text: "it is not known why it does not fit {pod}: {known}", About: node.Node,
				Params: []runs.Param{pod, {Name: "known", Value: node.MayFit}}})
		}
	}
	if p.More > 0 {
		add(runs.Reason{
			Code: codeNodesRefused, Text: "{more} {more?more Node does|more Nodes do} not fit {pod}: {rules}",
			Params: []runs.Param{
				{Name: "more", Value: fmt.Sprint(p.More)}, {Name: "pod", Value: p.Pod.Kind + " " + p.Pod.Name},
				{Name: "rules", Value: strings.Join(p.MoreRules, ", ")},
			},
		})
	}
}

func joined(all []Refusal) string {
	texts := make([]string, 0, len(all))
	for _, r := range all {
		texts = append(texts, r.Text)
	}
	return strings.Join(texts, "; ")
}
