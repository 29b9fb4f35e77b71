// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvcprotection

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// liveList is what a list of the Pods of a namespace from the server has shown: the claims that
// no Pod uses. It is about claims that the cache showed before the list began as being deleted,
// or without a Pod that runs. The list has every Pod that was on a node when one of these was
// deleted, or when the last Pod of one of these ended. So a namespace with 1,000 claims that is
// deleted costs one list, and so does a Pod with 100 claims that ends.
type liveList struct {
	at   time.Time
	free map[types.UID]string // the resourceVersions of the claims
}

// remembered is for how long a list serves. Many claims of many namespaces run in any order when
// the controller starts.
const remembered = time.Minute

// usage is in what way a Pod uses a claim: keeps or uses.
type usage func(*corev1.Pod, *corev1.PersistentVolumeClaim) bool

// usersOf returns those of some Pods that use a claim.
func usersOf(claim *corev1.PersistentVolumeClaim, pods []*corev1.Pod, used usage) (users []string) {
	for _, pod := range pods {
		if used(pod, claim) {
			users = append(users, "Pod "+pod.Name)
		}
	}
	return users
}

// onServer returns the Pods that use a claim and that the server has. It is for a claim without
// a Pod in the cache.
func (r *reconciler) onServer(ctx context.Context, claim *corev1.PersistentVolumeClaim, used usage) ([]string, error) {
	if version := claim.ResourceVersion; version != "" && r.live[claim.Namespace].free[claim.UID] == version {
		return nil, nil
	}
	pods, err := r.listPods(ctx, claim.Namespace)
	if err != nil {
		return nil, err
	}
	users := usersOf(claim, pods, used)
	r.behind = len(users) > 0
	return users, nil
}

// listPods reads the Pods of a namespace from the server, and remembers which claims no Pod uses.
func (r *reconciler) listPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	now := time.Now()
	maps.DeleteFunc(r.live, func(_ string, l liveList) bool { return now.Sub(l.at) > remembered })
	var concerned []cache.Item[*corev1.PersistentVolumeClaim]
	for key, claim := range r.claims.Snapshot().Namespace(namespace) { // before the list
		if claim.Meta().Deleting() || !r.OmitUnused && r.idle(key) {
			concerned = append(concerned, claim)
		}
	}
	pods, _, err := r.pods.Server().List(ctx, client.Selection{Namespace: namespace, WithoutManagedFields: true})
	if err != nil {
		return nil, fmt.Errorf("listing the Pods of namespace %s: %w", namespace, err)
	}
	naming := map[string][]*corev1.Pod{}
	for _, pod := range pods {
		for _, name := range volumes.ClaimsOf(pod) {
			naming[name] = append(naming[name], pod)
		}
	}
	free := map[types.UID]string{}
	for _, claim := range concerned {
		if unneeded(claim, naming[claim.Key().Name]) {
			free[claim.Meta().UID] = string(claim.Meta().Version)
		}
	}
	r.live[namespace] = liveList{now, free}
	return pods, nil
}

// idle reports whether the cache shows that all Pods that name a claim have ended.
func (r *reconciler) idle(claim object.Key) bool {
	for _, item := range r.byClaim.Find(claim.String()) {
		if pod, err := item.Object(); err != nil || !volumes.Stopped(pod) {
			return false
		}
	}
	return true
}

// unneeded reports whether none of the Pods that name a claim uses it.
func unneeded(item cache.Item[*corev1.PersistentVolumeClaim], pods []*corev1.Pod) bool {
	if len(pods) == 0 {
		return true // without decoding the claim
	}
	used := uses
	if item.Meta().Deleting() {
		used = keeps
	}
	claim, err := item.Object()
	return err == nil && len(usersOf(claim, pods, used)) == 0
}
