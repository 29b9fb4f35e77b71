// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions derives the four conditions that belong to the kubelet from phase
// and containers, with its reasons and messages (pkg/kubelet/status/generate.go
// of Kubernetes 1.37). Conditions of others are left as they are.
func (p *pass) conditions() {
	sandbox := corev1.ConditionTrue
	if p.status.PodIP == "" || ended(p.status.Phase) {
		sandbox = corev1.ConditionFalse
	}
	p.condition(corev1.PodReadyToStartContainers, sandbox, "", "")

	status, reason, message := p.initialized()
	p.condition(corev1.PodInitialized, status, reason, message)

	status, reason, message = p.containersReady()
	p.condition(corev1.ContainersReady, status, reason, message)

	if status == corev1.ConditionTrue {
		status, reason, message = p.gates()
	}
	p.condition(corev1.PodReady, status, reason, message)
}

func (p *pass) initialized() (status corev1.ConditionStatus, reason, message string) {
	var incomplete []string
	for i := range p.pod.Spec.InitContainers {
		c := &p.pod.Spec.InitContainers[i]
		s := statusOf(p.status.InitContainerStatuses, c.Name)
		if s == nil || !sidecar(c) && !s.Ready || sidecar(c) && s.State.Waiting != nil {
			incomplete = append(incomplete, c.Name)
		}
	}
	switch {
	case p.status.Phase == corev1.PodSucceeded:
		return corev1.ConditionTrue, "PodCompleted", ""
	case len(incomplete) > 0:
		return corev1.ConditionFalse, "ContainersNotInitialized",
			fmt.Sprintf("containers with incomplete status: %s", incomplete)
	}
	return corev1.ConditionTrue, "", ""
}

func (p *pass) containersReady() (status corev1.ConditionStatus, reason, message string) {
	var unready []string
	for i := range p.pod.Spec.InitContainers {
		c := &p.pod.Spec.InitContainers[i]
		if s := statusOf(p.status.InitContainerStatuses, c.Name); sidecar(c) && (s == nil || !s.Ready) {
			unready = append(unready, c.Name)
		}
	}
	for i := range p.status.ContainerStatuses {
		if s := &p.status.ContainerStatuses[i]; !s.Ready {
			unready = append(unready, s.Name)
		}
	}
	switch {
	case p.status.Phase == corev1.PodSucceeded:
		return corev1.ConditionFalse, "PodCompleted", ""
	case p.status.Phase == corev1.PodFailed:
		return corev1.ConditionFalse, "PodFailed", ""
	case len(unready) > 0:
		return corev1.ConditionFalse, "ContainersNotReady",
			fmt.Sprintf("containers with unready status: %s", unready)
	}
	return corev1.ConditionTrue, "", ""
}

// gates checks the readiness gates, which others set.
func (p *pass) gates() (status corev1.ConditionStatus, reason, message string) {
	var closed []string
	for _, gate := range p.pod.Spec.ReadinessGates {
		switch c := conditionOf(p.status, gate.ConditionType); {
		case c == nil:
			closed = append(closed, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case c.Status != corev1.ConditionTrue:
			closed = append(closed, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, c.Status))
		}
	}
	if len(closed) > 0 {
		return corev1.ConditionFalse, "ReadinessGatesNotReady", strings.Join(closed, ", ")
	}
	return corev1.ConditionTrue, "", ""
}

func (p *pass) condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	c := conditionOf(p.status, kind)
	if c == nil {
		p.status.Conditions = append(p.status.Conditions, corev1.PodCondition{Type: kind})
		c = &p.status.Conditions[len(p.status.Conditions)-1]
	}
	if c.Status != status {
		c.LastTransitionTime = metav1.NewTime(p.now)
	}
	c.Status, c.Reason, c.Message, c.ObservedGeneration = status, reason, message, p.pod.Generation
}

func conditionOf(status *corev1.PodStatus, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return &status.Conditions[i]
		}
	}
	return nil
}
