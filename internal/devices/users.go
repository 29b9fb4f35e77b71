// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"iter"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// Users finds the Pods that use a claim or a template. The controllers of a process share one
// index. It is safe for concurrent use.
type Users struct{ index cache.Index[*corev1.Pod] }

// usersID identifies the index.
type usersID struct{}

// UsersOf returns the Users among the Pods of an informer.
func UsersOf(pods cache.SharedInformer[*corev1.Pod]) Users {
	return Users{cache.SharedIndex(pods, usersID{}, usesOf)}
}

// OfClaim returns the Pods that state a claim by its name. Whether the claim is the one that a Pod
// means is for [Claim.Is].
func (u Users) OfClaim(claim object.Key) iter.Seq2[object.Key, cache.Item[*corev1.Pod]] {
	return u.index.Find(usesClaim(claim))
}

// OfTemplate returns the Pods that state a template.
func (u Users) OfTemplate(template object.Key) iter.Seq2[object.Key, cache.Item[*corev1.Pod]] {
	return u.index.Find(usesTemplate(template))
}

func usesClaim(claim object.Key) string       { return "claim " + claim.String() }
func usesTemplate(template object.Key) string { return "template " + template.String() }

func usesOf(item cache.Item[*corev1.Pod]) (values []string, err error) {
	pod, err := WithClaims(item)
	if err != nil || pod == nil {
		return nil, err
	}
	for _, c := range ClaimsOf(pod) {
		if c.Name != "" {
			values = append(values, usesClaim(object.Key{Namespace: pod.Namespace, Name: c.Name}))
		}
		if c.Template != "" {
			values = append(values, usesTemplate(object.Key{Namespace: pod.Namespace, Name: c.Template}))
		}
	}
	return values, nil
}
