// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/explain/nodefit"
	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/object"
)

// mostRefusing is how many Nodes are named, with the Pods of each. The others are counted, by what the Node alone says.
const mostRefusing = 10

// mostClaims is how many claims of a Pod are looked up.
const mostClaims = 8

// scheduling is the condition that says that no Node fits a Pod.
func scheduling(state map[string]any) (message string, since time.Time, waits bool) {
	o := jsontree.Tree{Value: state}
	c := o.Named("type", string(corev1.PodScheduled), "status", "conditions")
	if c.Text("status") != string(corev1.ConditionFalse) || c.Text("reason") != corev1.PodReasonUnschedulable || o.Text("spec", "nodeName") != "" {
		return "", since, false
	}
	since, _ = time.Parse(time.RFC3339, c.Text("lastTransitionTime")) // without a time it is zero
	return c.Text("message"), since, true
}

// placement adds the Nodes to the facts, with the rules that each of them fails, if the scheduler says of the object or of a Pod below it that
// no Node fits.
func (g Gatherer) placement(ctx context.Context, facts *explain.Facts) {
	candidates := append([]explain.Part{{Object: facts.Object, State: facts.State}}, facts.Below...)
	at := slices.IndexFunc(candidates, func(p explain.Part) bool {
		_, _, waits := scheduling(p.State)
		return waits && p.Object.Group == "" && p.Object.Kind == "Pod"
	})
	if at < 0 {
		return
	}
	waiting := candidates[at]
	message, since, _ := scheduling(waiting.State)
	counts, counted := nodefit.Parse(message)
	pod := &corev1.Pod{}
	if !counted || runtime.DefaultUnstructuredConverter.FromUnstructured(waiting.State, pod) != nil {
		return // the scheduler did not come to look at Nodes, or the message is of another program
	}
	items, more, err := list(ctx, g.Client, query{resource: nodes}, "")
	if err != nil {
		facts.Unread = append(facts.Unread, "which rule each Node fails: "+err.Error())
		return
	}
	p := placing{pod: pod, states: items}
	p.read(ctx, g)
	facts.Placement = &explain.Placement{Pod: waiting.Object, Scheduler: cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName), Said: since}
	p.tell(facts.Placement, counts, more)
}

// placing checks the Nodes for one Pod.
type placing struct {
	pod     *corev1.Pod
	states  []map[string]any // of the Nodes, sorted by name as the server lists them
	results []nodefit.Result
	unread  []string
}

// read reads the Pods of the first Nodes and the volumes of the Pod, and checks all Nodes.
func (p *placing) read(ctx context.Context, g Gatherer) {
	p.results = make([]nodefit.Result, len(p.states))
	all := make([]nodefit.Node, len(p.states))
	var volumes []nodefit.Volume
	var unbound []string
	var refusals [mostRefusing]error
	var running sync.WaitGroup
	running.Go(func() { volumes, unbound = g.volumesOf(ctx, p.pod) })
	for i, state := range p.states {
		all[i] = nodefit.Node{Node: &corev1.Node{}, PodsNotKnown: true}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(state, all[i].Node); err != nil {
			continue // no Node of an API server; it fails no rule, and the counts differ
		}
		if i < mostRefusing {
			running.Go(func() { all[i].Pods, all[i].PodsNotKnown, refusals[i] = g.podsOn(ctx, all[i].Node.Name) })
		}
	}
	running.Wait()
	for i := range all {
		p.results[i] = nodefit.Check(p.pod, all[i], volumes...)
	}
	for _, err := range refusals {
		if err != nil {
			p.unread = append(p.unread, "what the Pods of each Node ask for: "+err.Error())
			break
		}
	}
	p.unread = append(p.unread, unbound...)
}

// podsOn reads the Pods that are assigned to a Node.
func (g Gatherer) podsOn(ctx context.Context, node string) (all []*corev1.Pod, partly bool, err error) {
	items, more, err := list(ctx, g.Client, query{resource: pods, fields: "spec.nodeName=" + node}, "")
	if err != nil {
		return nil, true, err
	}
	for _, item := range items {
		pod := &corev1.Pod{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(item, pod) != nil {
			more = true
			continue
		}
		all = append(all, pod)
	}
	return all, more, nil
}

var (
	claims            = object.Resource{Version: "v1", Plural: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true}
	persistentVolumes = object.Resource{Version: "v1", Plural: "persistentvolumes", Kind: "PersistentVolume"}
)

// volumesOf reads the volumes to which the claims of a Pod are bound.
func (g Gatherer) volumesOf(ctx context.Context, pod *corev1.Pod) (all []nodefit.Volume, unread []string) {
	asked := 0
	for i := range pod.Spec.Volumes {
		from := pod.Spec.Volumes[i].PersistentVolumeClaim
		if from == nil {
			continue
		}
		if asked++; asked > mostClaims {
			return all, append(unread, fmt.Sprintf("for which Nodes the volumes of the Pod are, beyond its first %d claims", mostClaims))
		}
		v, err := g.volumeOf(ctx, object.Key{Namespace: pod.Namespace, Name: from.ClaimName})
		if err != nil && !apierrors.IsNotFound(err) {
			unread = append(unread, fmt.Sprintf("for which Nodes the volume of the claim %s is: %v", from.ClaimName, err))
		}
		if v.Affinity != nil {
			all = append(all, v)
		}
	}
	return all, unread
}

func (g Gatherer) volumeOf(ctx context.Context, key object.Key) (nodefit.Volume, error) {
	v := nodefit.Volume{Claim: key.Name}
	claim, err := client.ForResource[*corev1.PersistentVolumeClaim](g.Client, claims).Get(ctx, key)
	if err != nil || claim.Spec.VolumeName == "" {
		return v, err
	}
	volume, err := client.ForResource[*corev1.PersistentVolume](g.Client, persistentVolumes).Get(ctx, object.Key{Name: claim.Spec.VolumeName})
	if err == nil {
		v.Affinity = volume.Spec.NodeAffinity
	}
	return v, err
}

// tell adds what was found to the facts.
func (p *placing) tell(into *explain.Placement, counts nodefit.Counts, more bool) {
	rest, open := map[string]int{}, 0
	for i := range p.results {
		refuses := refusalsOf(&p.results[i])
		switch {
		case i < mostRefusing:
			node := explain.NodeFit{Node: identify(nodes, p.states[i]), Refuses: refuses}
			if len(refuses) == 0 {
				node.MayFit = mayFit(&p.results[i], counts)
			}
			into.Nodes = append(into.Nodes, node)
			continue
		case len(refuses) == 0:
			open++
		default:
			rules, _ := p.results[i].Counted()
			for _, rule := range rules {
				rest[rule]++
			}
		}
		into.More++
	}
	for _, rule := range slices.Sorted(maps.Keys(rest)) {
		into.MoreRules = append(into.MoreRules, fmt.Sprintf("%d %s", rest[rule], rule))
	}
	if open > 0 {
		into.MoreRules = append(into.MoreRules, fmt.Sprintf("of %d the Pods decide, which were not read", open))
	}
	unsure := p.unread
	if others := counts.Others(); len(others) > 0 {
		unsure = append(unsure, "which Nodes fail rules that only the scheduler checks: "+strings.Join(others, ", "))
	}
	if more {
		unsure = append(unsure, fmt.Sprintf("Nodes beyond the first %d", mostBelow))
	} else if differences := counts.Compare(p.results); len(differences) > 0 {
		unsure = append(unsure, "why the Nodes and the scheduler's message differ: "+strings.Join(differences, "; ")+" (the cluster has changed since, or the scheduler counts otherwise)")
	}
	into.Unsure = unsure
}

// mayFit says what is known of a Node that fails no rule.
func mayFit(r *nodefit.Result, counts nodefit.Counts) string {
	switch {
	case r.Undecided:
		return "it fails no rule by itself, and what its Pods ask for is not known"
	case len(counts.Others()) > 0:
		return "the scheduler also counts " + strings.Join(counts.Others(), ", ") + ", and does not say of which Nodes"
	}
	return "by its present state it fails no rule"
}

func refusalsOf(r *nodefit.Result) (all []explain.Refusal) {
	for _, f := range r.Fails {
		all = append(all, explain.Refusal{Text: f.Text, By: f.Of})
	}
	return all
}
