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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/internal/shortlist"
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

// targetSelectors has the selectors of the targets of all HorizontalPodAutoscalers, as they were read
// last. It is safe for concurrent use.
type targetSelectors struct {
	mu sync.Mutex
	// in has the selectors by namespace. nil is a target that was read and has no selector.
	in map[string]map[object.Key]labels.Selector
}

// put notes the selector of a target. nil is none.
func (t *targetSelectors) put(key object.Key, selector labels.Selector) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.in == nil {
		t.in = map[string]map[object.Key]labels.Selector{}
	}
	if t.in[key.Namespace] == nil {
		t.in[key.Namespace] = map[object.Key]labels.Selector{}
	}
	t.in[key.Namespace][key] = selector
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

// selecting returns the keys of the HorizontalPodAutoscalers whose targets select one of the Pods, in
// order, and two at most. The Pods of a template have the same labels, which are matched once.
func (t *targetSelectors) selecting(namespace string, pods []*corev1.Pod) []object.Key {
	sets := map[string]labels.Set{}
	for _, pod := range pods {
		sets[labels.Set(pod.Labels).String()] = pod.Labels
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var keys []object.Key
	for key, selector := range t.in[namespace] {
		if selector == nil {
			continue
		}
		for _, set := range sets {
			if selector.Matches(set) {
				keys = append(keys, key)
				break
			}
		}
	}
	slices.SortFunc(keys, func(a, b object.Key) int { return strings.Compare(a.String(), b.String()) })
	return keys[:min(len(keys), 2)]
}

// foreign says which Pods that the selector selects belong to another controller than the target: they
// count too, which users rarely want. It is known for the kinds of Kubernetes alone.
func foreign(s *snapshot) string {
	owners := map[string]int{}
	for _, pod := range s.pods {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref != nil && !belongs(s.hpa.Spec.ScaleTargetRef, pod, ref) {
			owners[ref.Kind+" "+ref.Name]++
		}
	}
	if len(owners) == 0 {
		return ""
	}
	n, names := 0, []string{}
	for name, count := range owners {
		n, names = n+count, append(names, name)
	}
	slices.Sort(names)
	return fmt.Sprintf("the selector of the target selects %s of others too: %s", pods(n), shortlist.Join(names, mostNamed))
}

// belongs reports whether a Pod is one of a target's, by the names of its owners. The ReplicaSets of a
// Deployment are called after it and the hash of their template.
func belongs(target autoscalingv2.CrossVersionObjectReference, pod *corev1.Pod, owner *metav1.OwnerReference) bool {
	switch target.Kind {
	case "Deployment":
		return owner.Kind == "ReplicaSet" && owner.Name == target.Name+"-"+pod.Labels["pod-template-hash"]
	case "ReplicaSet", "StatefulSet", "ReplicationController":
		return owner.Kind == target.Kind && owner.Name == target.Name
	}
	return true
}
