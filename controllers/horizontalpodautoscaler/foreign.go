// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"fmt"
	"maps"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/internal/shortlist"
)

// ForeignPodsAnnotation is an annotation of HorizontalPodAutoscalers. It says whether Pods count that
// the selector of the target selects and that are not the target's: those of another workload with the
// same labels, and those without a controller. Its values are [CountForeignPods] and
// [IgnoreForeignPods]. Without it they count, as in kube-controller-manager.
//
// Which Pods are a target's is known for Deployments, ReplicaSets, StatefulSets and
// ReplicationControllers. All Pods of other targets count.
const ForeignPodsAnnotation = "setpoint.io/foreign-pods"

// Values of [ForeignPodsAnnotation].
const (
	CountForeignPods  = "count"
	IgnoreForeignPods = "ignore"
)

// eventAnnotation is the reason of the Event that the annotation has another value.
const eventAnnotation = "InvalidForeignPods"

// ignoresForeign reports whether the Pods of others do not count, and what is wrong with the annotation.
func ignoresForeign(hpa *autoscalingv2.HorizontalPodAutoscaler) (ignores bool, problem string) {
	switch value, set := hpa.Annotations[ForeignPodsAnnotation]; {
	case !set || value == CountForeignPods:
		return false, ""
	case value != IgnoreForeignPods:
		return false, fmt.Sprintf("the annotation %s is %q; write %q, or %q, which is what happens now",
			ForeignPodsAnnotation, value, IgnoreForeignPods, CountForeignPods)
	case !knowsPodsOf(hpa.Spec.ScaleTargetRef):
		return false, fmt.Sprintf("the annotation %s has no effect: which Pods belong to a %s is not known",
			ForeignPodsAnnotation, hpa.Spec.ScaleTargetRef.Kind)
	}
	return true, ""
}

// foreigners are the Pods that the selector of a target selects and that are not the target's.
type foreigners struct {
	pods    int
	owners  []string // their controllers, in order
	ignored bool     // they do not count
}

// String says which they are, for a condition. It is empty if there are none.
func (f foreigners) String() string {
	switch names := shortlist.Join(f.owners, mostNamed); {
	case f.pods == 0:
		return ""
	case f.ignored:
		return fmt.Sprintf("left out: %s of others that the selector of the target selects (%s)", pods(f.pods), names)
	default:
		return fmt.Sprintf("the selector of the target selects %s of others too: %s", pods(f.pods), names)
	}
}

// divide divides the Pods that the selector of a target selects into its own, and those of others.
// target is the UID of the target.
func divide(all []*corev1.Pod, ref autoscalingv2.CrossVersionObjectReference, target types.UID) (own []*corev1.Pod, others foreigners) {
	if !knowsPodsOf(ref) {
		return all, foreigners{}
	}
	owners := map[string]bool{}
	own = make([]*corev1.Pod, 0, len(all))
	for _, pod := range all {
		by := metav1.GetControllerOfNoCopy(pod)
		if belongs(ref, target, pod, by) {
			own = append(own, pod)
			continue
		}
		name := "no controller"
		if by != nil {
			name = by.Kind + " " + by.Name
		}
		others.pods++
		owners[name] = true
	}
	others.owners = slices.Sorted(maps.Keys(owners))
	return own, others
}

// knowsPodsOf reports whether the controller knows which Pods are a target's. Operators of custom kinds
// may have any objects between theirs and the Pods, such as the ReplicaSets of a rollout.
func knowsPodsOf(target autoscalingv2.CrossVersionObjectReference) bool {
	group := schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).Group
	switch target.Kind {
	case "Deployment", "ReplicaSet", "StatefulSet":
		return group == "apps"
	case "ReplicationController":
		return group == ""
	}
	return false
}

// belongs reports whether a Pod is one of a target's, whose Pods are known. The controller may not read ReplicaSets, as
// upstream's may not: it knows those of a Deployment by their names, which are that of the Deployment
// and the hash of their template.
func belongs(ref autoscalingv2.CrossVersionObjectReference, target types.UID, pod *corev1.Pod, by *metav1.OwnerReference) bool {
	switch {
	case by == nil:
		return false
	case ref.Kind == "Deployment":
		return by.Kind == "ReplicaSet" && by.Name == ref.Name+"-"+pod.Labels["pod-template-hash"]
	}
	return by.UID == target
}
