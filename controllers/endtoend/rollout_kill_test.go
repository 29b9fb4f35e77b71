// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/daemonset"
	"github.com/setpoint-io/setpoint/controllers/statefulset"
	"github.com/setpoint-io/setpoint/internal/managertest"
)

// rollout is an owner of Pods whose template changes while its controller is killed again and again.
type rollout struct {
	controller string
	rights     []rbacv1.PolicyRule
	manifest   string
	kind       string
	pods       int                   // of which one may be unavailable
	done       func(c *cluster) bool // whether the rollout is over
}

func rollouts() []rollout {
	return []rollout{
		{
			controller: statefulset.Name, rights: statefulset.Rights(), kind: "statefulset", pods: 3,
			manifest: `{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": {"replicas": 3, "podManagementPolicy": "Parallel",
				"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
				"spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "web:1"}]}}}}`,
			done: func(c *cluster) bool {
				set, err := client.For[*appsv1.StatefulSet](c.Client).Get(c.t.Context(), c.key("web"))
				if err != nil {
					c.t.Fatal(err)
				}
				st := &set.Status
				return st.ObservedGeneration == set.Generation && st.UpdatedReplicas == 3 && st.AvailableReplicas == 3 && st.CurrentRevision == st.UpdateRevision
			},
		}, {
			controller: daemonset.Name, rights: daemonset.Rights(), kind: "daemonset", pods: 3,
			manifest: `{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "web"}, "spec": {
				"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"terminationGracePeriodSeconds": 0,
				"containers": [{"name": "main", "image": "web:1"}], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
				{"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-0", "node-1", "node-2"]}]}]}}}}}}}`,
			done: func(c *cluster) bool {
				set, err := client.For[*appsv1.DaemonSet](c.Client).Get(c.t.Context(), c.key("web"))
				if err != nil {
					c.t.Fatal(err)
				}
				st := &set.Status
				return st.ObservedGeneration == set.Generation && st.UpdatedNumberScheduled == 3 && st.NumberAvailable == 3
			},
		},
	}
}

// The first process is killed after its first write, before it hears the answer, the second after its
// second, the third after its third, and so on until the rollout is over.
func TestARolloutWhoseControllerIsKilledAfterItsWritesMakesEachOfThemOnce(t *testing.T) {
	for _, r := range rollouts() {
		t.Run(r.kind, r.killedAfterItsWrites)
	}
}

func (r *rollout) killedAfterItsWrites(t *testing.T) {
	c := &cluster{Cluster: shared.Get(t), t: t}
	c.namespace = c.Namespace(t)
	alone := managertest.NewAlone(t, c.Cluster, r.controller, r.rights)
	m := &mortal{cluster: c, alone: alone}
	c.manifest(r.manifest)
	m.settle("the first Pods", func() bool { return r.done(c) })
	lived := map[types.UID]bool{}
	w := watchPods(c, func(version string, pods map[string]*corev1.Pod) error {
		available := 0
		for _, pod := range pods {
			lived[pod.UID] = true
			if alive(pod) && ready(pod) {
				available++
			}
		}
		if len(pods) > r.pods || available < r.pods-1 {
			return fmt.Errorf("resourceVersion %s: %d Pods of at most %d, %d available of at least %d", version, len(pods), r.pods, available, r.pods-1)
		}
		return nil
	})
	for _, step := range [][]string{
		{"set", "image", r.kind + "/web", "main=web:2"},
		{"rollout", "undo", r.kind + "/web"},
	} {
		c.kubectl(step...)
		m.settle(strings.Join(step, " "), func() bool { return r.done(c) })
	}
	w.end(c)
	m.check()
	// Three Pods at first, and three for each of the two rollouts, of two templates. Other tests of the cluster may
	// evict one: it is replaced, and then a rollout may have one less to delete. They may also have left owners of the
	// kind in other namespaces, on which the controller acts as well.
	writes := func(pattern string) int {
		return count(alone.Writes(), regexp.MustCompile(fmt.Sprintf("^"+pattern+"$", ".*/"+c.namespace)))
	}
	if made := writes(`POST %s/pods`); made != len(lived) || made < 3*r.pods {
		t.Errorf("%d Pods were created, and %d lived, want at least %d", made, len(lived), 3*r.pods)
	}
	if deleted := writes(`DELETE %s/pods/.*`); deleted > 2*r.pods || deleted+r.pods > len(lived) {
		t.Errorf("%d Pods were deleted, want at most %d; %d lived", deleted, 2*r.pods, len(lived))
	}
	if made := writes(`POST %s/controllerrevisions`); made != 2 {
		t.Errorf("%d revisions were created, want 2", made)
	}
}
