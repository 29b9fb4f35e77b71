// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestCrowdsAreThoseOfAllReplicaSetsOfAnOwnerOrOfOneWithout(t *testing.T) {
	deployment := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop", UID: "deployment-uid", Controller: new(true)}
	// The Pod on node-2 is the youngest and would go, were it not for the crowd.
	for name, c := range map[string]struct {
		owners   []metav1.OwnerReference
		replicas int32
		pods     map[string]string // to nodes
		deleted  string
	}{
		"of a Deployment": {[]metav1.OwnerReference{deployment}, 1, map[string]string{"web-a": "node-1", "web-z": "node-2", "api-a": "node-1", "old-a": "node-1"}, "web-a"},
		"of nobody":       {nil, 2, map[string]string{"web-a": "node-1", "web-b": "node-1", "web-z": "node-2", "api-a": "node-2", "old-a": "node-2"}, "web-a"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(s *server) {
				sets := map[string]*appsv1.ReplicaSet{}
				for _, app := range []string{"web", "api", "old"} {
					set := webSet(1)
					set.Name, set.UID, set.OwnerReferences = app, types.UID(app+"-uid"), c.owners
					set.Spec.Selector.MatchLabels = map[string]string{"app": app}
					if app == "web" {
						*set.Spec.Replicas = c.replicas
					}
					sets[app] = s.addSet(set)
				}
				now := time.Now()
				for name, node := range c.pods {
					pod := loosePod(name)
					pod.Labels, pod.Spec.NodeName = map[string]string{"app": name[:3]}, node
					pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(sets[name[:3]], replicaSets.GroupVersionKind())}
					age := time.Hour
					switch name {
					case "web-b":
						age = 48 * time.Hour
					case "web-z":
						age = time.Minute
					}
					pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
						Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-age)),
					}}}
					s.addPod(pod)
				}
			}, func(t *testing.T, s *server) {
				if asked := s.asked(s.pods, "delete"); len(asked) != 1 || asked[0].Key.Name != c.deleted {
					t.Errorf("deleted were %v, want %s, which is in a crowd", asked, c.deleted)
				}
			})
		})
	}
}
