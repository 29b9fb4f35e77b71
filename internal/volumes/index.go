// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
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

// ClaimKeys calls add with the key of each claim of a Pod. It is the mapping of
// controller.Watches for a loop over claims.
func ClaimKeys(item cache.Item[*corev1.Pod], add func(object.Key)) error {
	pod, err := item.Object()
	if err != nil {
		return err
	}
	for _, name := range ClaimsOf(pod) {
		add(object.Key{Namespace: pod.Namespace, Name: name})
	}
	return nil
}
