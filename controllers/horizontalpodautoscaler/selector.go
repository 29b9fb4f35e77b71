// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"fmt"
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
	selector labels.Selector // nil is one whose target was read and has no selector
	target   string
	// own says that Pods of others than the target do not count.
	own bool
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
	in map[string]map[object.Key]selection // by namespace
}

// put notes which Pods a HorizontalPodAutoscaler counts.
func (t *targetSelectors) put(key object.Key, s selection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.in == nil {
		t.in = map[string]map[object.Key]selection{}
	}
	if t.in[key.Namespace] == nil {
		t.in[key.Namespace] = map[object.Key]selection{}
	}
	t.in[key.Namespace][key] = s
}

func (t *targetSelectors) forget(key object.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.in[key.Namespace], key)
	if len(t.in[key.Namespace]) == 0 {
		delete(t.in, key.Namespace)
	}
}

// known reports whether the target of a HorizontalPodAutoscaler has been read, or was tried to be.
func (t *targetSelectors) known(key object.Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known := t.in[key.Namespace][key]
	return known
}

// sharing returns the keys of the HorizontalPodAutoscalers that count one of the Pods that one of them
// counts, itself included, in order, and two at most. The Pods of a template have the same labels,
// which are matched once.
func (t *targetSelectors) sharing(key object.Key, pods []*corev1.Pod) []object.Key {
	sets := map[string]labels.Set{}
	for _, pod := range pods {
		sets[labels.Set(pod.Labels).String()] = pod.Labels
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.in[key.Namespace][key]
	var keys []object.Key
	for key, other := range t.in[key.Namespace] {
		for _, set := range sets {
			if other.counts(is, set) {
				keys = append(keys, key)
				break
			}
		}
	}
	slices.SortFunc(keys, func(a, b object.Key) int { return strings.Compare(a.String(), b.String()) })
	return keys[:min(len(keys), 2)]
}
