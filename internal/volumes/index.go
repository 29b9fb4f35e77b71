// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// podsByClaim is the identity of the index of [PodsByClaim].
type podsByClaim struct{}

// PodsByClaim returns the index of Pods by the claims that they name, as "namespace/name". All
// users of an informer share it. A Pod that is found may have an ephemeral volume with the name
// of a claim that it does not own: [Uses] says so.
func PodsByClaim(pods cache.SharedInformer[*corev1.Pod]) cache.Index[*corev1.Pod] {
	return cache.SharedIndex(pods, podsByClaim{}, func(pod cache.Item[*corev1.Pod]) ([]string, error) {
		var keys []string
		err := ClaimKeys(pod, func(claim object.Key) { keys = append(keys, claim.String()) })
		return keys, err
	})
}

// Fields of the volumes of a Pod. Source: k8s.io/api/core/v1/generated.proto.
var (
	ephemeral = wire.Path{Names: "spec.volumes.ephemeral", Numbers: [4]int32{2, 1, 2, 29}}
	// Claimed are those with claims.
	Claimed = []wire.Path{{Names: "spec.volumes.persistentVolumeClaim", Numbers: [4]int32{2, 1, 2, 10}}, ephemeral}
)

// MayHaveClaims reports whether a Pod may have volumes with claims. It is false only if the Pod certainly has none. Most Pods
// of most clusters have none, and need not be decoded then: at the start of a manager, that was 13 % of its CPU.
func MayHaveClaims(pod cache.Item[*corev1.Pod]) bool { return pod.MayHave(Claimed...) }

// MayHaveEphemeral does it for generic ephemeral volumes alone.
func MayHaveEphemeral(pod cache.Item[*corev1.Pod]) bool { return pod.MayHave(ephemeral) }

// ClaimKeys calls add with the key of each claim of a Pod. It is the mapping of
// controller.Watches for a loop over claims.
func ClaimKeys(item cache.Item[*corev1.Pod], add func(object.Key)) error {
	if !MayHaveClaims(item) {
		return nil
	}
	pod, err := item.Object()
	if err != nil {
		return err
	}
	for _, name := range ClaimsOf(pod) {
		add(object.Key{Namespace: pod.Namespace, Name: name})
	}
	return nil
}
