// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Reasons with which a kubelet refuses a Pod (pkg/kubelet/lifecycle of Kubernetes 1.37).
const (
	outOfPrefix              = "OutOf" // and the name of a resource
	nodeAffinity             = "NodeAffinity"
	unexpectedAdmissionError = "UnexpectedAdmissionError"
)

var rejectReasons = []string{
	outOfPrefix + "cpu", outOfPrefix + "memory", outOfPrefix + "pods", outOfPrefix + "ephemeral-storage",
	nodeAffinity, unexpectedAdmissionError,
}

func parseReject(value string) (string, error) {
	if !slices.Contains(rejectReasons, value) {
		return "", fmt.Errorf("%q is not a reason; choose %s", value, strings.Join(rejectReasons, ", "))
	}
	return value, nil
}

// reject refuses the Pod as a kubelet does whose Node it does not fit on: none of its
// containers starts.
func (p *pass) reject(reason string) {
	message := rejectMessage(p.pod, reason)
	p.status.Phase = corev1.PodFailed
	p.status.Reason = reason
	p.status.Message = "Pod was rejected: " + message
	p.status.ObservedGeneration = p.pod.Generation
	p.warn(reason, message)
}

// rejectMessage returns the kubelet's message. The numbers are those of a Node that has
// nothing of the resource.
func rejectMessage(pod *corev1.Pod, reason string) string {
	switch reason {
	case nodeAffinity:
		return "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
	case unexpectedAdmissionError:
		return "Update plugin resources failed due to a simulated error, which is unexpected."
	}
	name := corev1.ResourceName(strings.TrimPrefix(reason, outOfPrefix))
	return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: 0, capacity: 0", name, requested(pod, name))
}

// requested returns what the containers of a Pod request of a resource, of the CPU in
// thousandths.
func requested(pod *corev1.Pod, name corev1.ResourceName) int64 {
	if name == corev1.ResourcePods {
		return 1
	}
	var sum int64
	for i := range pod.Spec.Containers {
		quantity := pod.Spec.Containers[i].Resources.Requests[name]
		if name == corev1.ResourceCPU {
			sum += quantity.MilliValue()
		} else {
			sum += quantity.Value()
		}
	}
	return sum
}
