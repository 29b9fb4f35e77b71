// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/wire"
)

// Fields of Pods. Source: k8s.io/api/core/v1/generated.proto.
var (
	// entryName is the name of the last entry of spec.resourceClaims.
	entryName    = wire.Path{Names: "spec.resourceClaims.name", Numbers: [4]int32{2, 39, 1}}
	extendedName = wire.Path{Names: "status.extendedResourceClaimStatus.resourceClaimName", Numbers: [4]int32{3, 18, 2}}
)

// WithClaims returns the Pod of an item if the Pod uses any claim, and nil otherwise. In most
// clusters most Pods use none, and a Pod that uses none is not decoded.
func WithClaims(item cache.Item[*corev1.Pod]) (*corev1.Pod, error) {
	if without(item, entryName) && without(item, extendedName) {
		return nil, nil
	}
	pod, err := item.Object()
	if err != nil || !HasClaims(pod) {
		return nil, err
	}
	return pod, nil
}

// without reports whether an item certainly lacks a text. A list in JSON cannot be read as a
// text, which is an error: the object has then to be decoded.
func without(item cache.Item[*corev1.Pod], path wire.Path) bool {
	text, err := item.Text(path)
	return err == nil && text == ""
}
