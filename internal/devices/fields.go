// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/wire"
)

// claims are the fields of Pods in which claims stand. Source: k8s.io/api/core/v1/generated.proto.
var claims = []wire.Path{
	{Names: "spec.resourceClaims", Numbers: [4]int32{2, 39}},
	{Names: "status.extendedResourceClaimStatus", Numbers: [4]int32{3, 18}},
}

// WithClaims returns the Pod of an item if the Pod uses any claim, and nil otherwise. In most
// clusters most Pods use none, and a Pod that uses none is not decoded.
func WithClaims(item cache.Item[*corev1.Pod]) (*corev1.Pod, error) {
	if !item.MayHave(claims...) {
		return nil, nil
	}
	pod, err := item.Object()
	if err != nil || !HasClaims(pod) {
		return nil, err
	}
	return pod, nil
}
