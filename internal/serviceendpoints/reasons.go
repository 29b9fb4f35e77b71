// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceendpoints

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/podstate"
)

// Codes of the reasons why a Service has no endpoints, or fewer than it has Pods.
const (
	CodeNoSelector = "ServiceHasNoSelector"
	CodeNoPods     = "NoPodsSelected"
	CodeNotReady   = "PodsNotReady"
)

// BecauseUnselected states why a Service gets no endpoints from Pods. See [Selects].
func BecauseUnselected(ctx context.Context, service *corev1.Service) {
	reason := controller.Reason{Code: CodeNoSelector, Text: "the Service has no selector, so other programs write its endpoints", Ends: "it has a selector"}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		reason.Text, reason.Ends = "the Service has the type ExternalName and no endpoints", "it has another type and a selector"
	}
	controller.Because(ctx, reason)
}

// BecauseOfPods states why clients of a Service reach none of its Pods, or not all of them.
func BecauseOfPods(ctx context.Context, service *corev1.Service, pods []*corev1.Pod) {
	if len(pods) == 0 {
		controller.Because(ctx, controller.Reason{
			Code: CodeNoPods, Text: "no Pod of the namespace matches the selector {selector}",
			Params: controller.With("selector", labels.Set(service.Spec.Selector)), Ends: "a Pod has these labels",
		})
		return
	}
	ready := 0
	for _, pod := range pods {
		if Reachable(pod) && (podstate.Ready(pod) || service.Spec.PublishNotReadyAddresses) {
			ready++
		}
	}
	if ready < len(pods) {
		controller.Because(ctx, controller.Reason{
			Code: CodeNotReady, Text: "{ready} of {pods} {pods?Pod that the Service selects is ready and has|Pods that the Service selects are ready and have} an address",
			Params: controller.With("ready", ready, "pods", len(pods)), Ends: "the other Pods are ready or gone",
		})
	}
}
