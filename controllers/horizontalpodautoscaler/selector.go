// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/object"
)

// selectorProblem is what keeps the selector of a scale from being used.
type selectorProblem struct {
	reason, message string // of the condition ScalingActive
	event, text     string
	ends            string
}

// reasonAmbiguous is the reason of the condition, and of the Event, that Pods have several
// HorizontalPodAutoscalers.
const (
	reasonAmbiguous = "AmbiguousSelector"
	endsAmbiguous   = "one HorizontalPodAutoscaler is left for these Pods"
)

// parseSelector returns the selector of a scale.
// Source of reasons and texts: k8s.io/kubernetes/pkg/controller/podautoscaler, validateAndParseSelector.
func parseSelector(text string) (labels.Selector, *selectorProblem) {
	if text == "" {
		return nil, &selectorProblem{
			reason: "InvalidSelector", message: "the HPA target's scale is missing a selector",
			event: "SelectorRequired", text: "selector is required", ends: "the target has a selector",
		}
	}
	selector, err := labels.Parse(text)
	if err != nil {
		message := fmt.Sprintf("couldn't convert selector into a corresponding internal selector object: %v", err)
		return nil, &selectorProblem{reason: "InvalidSelector", message: message, event: "InvalidSelector", text: message, ends: "the selector of the target can be read"}
	}
	return selector, nil
}

// ambiguous says that Pods have several HorizontalPodAutoscalers.
func ambiguous(selector string, keys []object.Key) *selectorProblem {
	names := make([]string, 0, len(keys))
	for _, key := range keys {
		names = append(names, key.String())
	}
	message := fmt.Sprintf("pods by selector %v are controlled by more than one HPA (e.g. [%s])", selector, strings.Join(names, " "))
	return &selectorProblem{reason: reasonAmbiguous, message: message, event: reasonAmbiguous, text: message, ends: endsAmbiguous}
}

// stillAmbiguous returns what the status says of a selector that is ambiguous, or nil. After a restart
// it holds until the targets of all HorizontalPodAutoscalers of the namespace have been read: the other
// one may be among those that have not.
func stillAmbiguous(hpa *autoscalingv2.HorizontalPodAutoscaler) *selectorProblem {
	for _, c := range hpa.Status.Conditions {
		if c.Type == autoscalingv2.ScalingActive && c.Reason == reasonAmbiguous {
			return &selectorProblem{reason: reasonAmbiguous, message: c.Message, event: reasonAmbiguous, text: c.Message, ends: endsAmbiguous}
		}
	}
	return nil
}

// selection is which Pods a HorizontalPodAutoscaler counts.
type selection struct {
	text     string          // of the selector, as the scale has it
	selector labels.Selector // nil is one whose target was read and has no selector
	target   string
	// ref is what the target was found by.
	ref autoscalingv2.CrossVersionObjectReference
	// own says that Pods of others than the target do not count.
	own bool
}

// same reports whether two selections are of the same Pods.
func (s selection) same(other selection) bool {
	return s.text == other.text && s.ref == other.ref && s.target == other.target && s.own == other.own && (s.selector == nil) == (other.selector == nil)
}

// counts reports whether a Pod with these labels may count for both of two HorizontalPodAutoscalers,
// of which the other one counts it.
func (s selection) counts(other selection, set labels.Set) bool {
	if s.selector == nil || s.own && other.own && s.target != other.target {
		return false
	}
	return s.selector.Matches(set)
}

// targetSelectors has what all HorizontalPodAutoscalers select, as their targets were read last. It is
// safe for concurrent use.
type targetSelectors struct {
	mu sync.Mutex
	in map[string]*neighbours // by namespace
}

// neighbours are the HorizontalPodAutoscalers of a namespace. A selector is found by one label that Pods must have for it,
// so that a search does not compare all of them. Most selectors require one: that of an app.
type neighbours struct {
	of map[object.Key]placed
	at map[label]map[object.Key]bool
}

// placed is a selection and the label under which it is found.
type placed struct {
	selection
	label label
}

// label is one that a selector requires. The zero label is that of selectors that require none.
type label struct{ key, value string }

// place returns the label under which a selector is to be found: of those that it requires, the one of the fewest others.
func (n *neighbours) place(selector labels.Selector) (best label) {
	if selector == nil {
		return label{}
	}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		value, exact := selector.RequiresExactMatch(r.Key())
		if l := (label{r.Key(), value}); exact && (best == label{} || len(n.at[l]) < len(n.at[best])) {
			best = l
		}
	}
	return best
}

func (n *neighbours) remove(key object.Key) {
	l := n.of[key].label
	delete(n.of, key)
	if delete(n.at[l], key); len(n.at[l]) == 0 {
		delete(n.at, l)
	}
}

// parse is as parseSelector. The selector that a HorizontalPodAutoscaler had the last time is not parsed again.
func (t *targetSelectors) parse(key object.Key, text string) (labels.Selector, *selectorProblem) {
	t.mu.Lock()
	var known selection
	if n := t.in[key.Namespace]; n != nil {
		known = n.of[key].selection
	}
	t.mu.Unlock()
	if known.selector != nil && known.text == text {
		return known.selector, nil
	}
	return parseSelector(text)
}

// put notes which Pods a HorizontalPodAutoscaler counts.
func (t *targetSelectors) put(key object.Key, s selection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.in[key.Namespace]
	if n == nil {
		if t.in == nil {
			t.in = map[string]*neighbours{}
		}
		n = &neighbours{of: map[object.Key]placed{}, at: map[label]map[object.Key]bool{}}
		t.in[key.Namespace] = n
	}
	if was, known := n.of[key]; known {
		if was.same(s) {
			return
		}
		n.remove(key)
	}
	l := n.place(s.selector)
	n.of[key] = placed{s, l}
	if n.at[l] == nil {
		n.at[l] = map[object.Key]bool{}
	}
	n.at[l][key] = true
}

func (t *targetSelectors) forget(key object.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.in[key.Namespace]
	if n == nil {
		return
	}
	if n.remove(key); len(n.of) == 0 {
		delete(t.in, key.Namespace)
	}
}

// known reports whether the target of a HorizontalPodAutoscaler has been read, or was tried to be.
func (t *targetSelectors) known(key object.Key) bool {
	_, known := t.last(key)
	return known
}

// knownFor reports whether the target of a HorizontalPodAutoscaler was last read by this reference.
func (t *targetSelectors) knownFor(key object.Key, ref autoscalingv2.CrossVersionObjectReference) bool {
	is, known := t.last(key)
	return known && is.ref == ref
}

// last returns what was put last for a HorizontalPodAutoscaler, if anything was.
func (t *targetSelectors) last(key object.Key) (selection, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.in[key.Namespace]; n != nil {
		is, known := n.of[key]
		return is.selection, known
	}
	return selection{}, false
}

// sharing returns the keys of the HorizontalPodAutoscalers that count one of the Pods that one of them
// counts, itself included, in order, and two at most. The Pods of a template have the same labels,
// which are matched once.
func (t *targetSelectors) sharing(key object.Key, pods []*corev1.Pod) []object.Key {
	sets := map[string]labels.Set{}
	for i, pod := range pods {
		if i == 0 || !maps.Equal(pods[i-1].Labels, pod.Labels) {
			sets[labels.Set(pod.Labels).String()] = pod.Labels
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.in[key.Namespace]
	if n == nil {
		return nil
	}
	is := n.of[key].selection
	found := map[object.Key]bool{}
	for _, set := range sets {
		compare := func(l label) {
			for key := range n.at[l] {
				if !found[key] && n.of[key].counts(is, set) {
					found[key] = true
				}
			}
		}
		compare(label{})
		for name, value := range set {
			compare(label{name, value})
		}
	}
	keys := slices.SortedFunc(maps.Keys(found), func(a, b object.Key) int { return strings.Compare(a.String(), b.String()) })
	return keys[:min(len(keys), 2)]
}
