// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvcprotection

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/volumes"
)

// liveList is the last list of the Pods of a namespace from the server, and the claims that
// the cache showed as being deleted before the list began. The list has every Pod that was on
// a node when one of these claims was deleted, so a namespace with 1,000 claims that is
// deleted costs one list. That no Pod keeps a claim stays true. A Pod that uses the claim may
// have changed since, and is read again.
type liveList struct {
	claims map[types.UID]string // their resourceVersions
	pods   []*corev1.Pod        // with a claim
}

// released reports whether the list shows that no Pod keeps a claim.
func (l *liveList) released(claim *corev1.PersistentVolumeClaim) bool {
	return claim.ResourceVersion != "" && l.claims[claim.UID] == claim.ResourceVersion && len(l.users(claim)) == 0
}

// users returns the Pods in the list that keep a claim.
func (l *liveList) users(claim *corev1.PersistentVolumeClaim) []string {
	var users []string
	for _, pod := range l.pods {
		if keeps(pod, claim) {
			users = append(users, "Pod "+pod.Name)
		}
	}
	return users
}

// listPods reads the Pods of a namespace from the server. A claim of the namespace that the
// cache shows as being deleted can be judged by them.
func (r *reconciler) listPods(ctx context.Context, namespace string) (liveList, error) {
	l := liveList{claims: map[types.UID]string{}}
	for _, item := range r.claims.Snapshot().Namespace(namespace) { // before the list
		if m := item.Meta(); m.Deleting() {
			l.claims[m.UID] = string(m.Version)
		}
	}
	pods, _, err := r.pods.Server().List(ctx, client.Selection{Namespace: namespace})
	if err != nil {
		return liveList{}, fmt.Errorf("listing the Pods of namespace %s: %w", namespace, err)
	}
	l.pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return len(volumes.ClaimsOf(pod)) == 0 })
	return l, nil
}
