// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/internal/managertest"
)

// sizes follows how large ReplicaSets are to be, version by version.
type sizes struct {
	mu  sync.Mutex
	all map[types.UID][]int32 // each size once, until it changes
}

func watchSizes(c *cluster) *sizes {
	c.t.Helper()
	s := &sizes{all: map[types.UID][]int32{}}
	eyes := managertest.Run(c.t, c.Config)
	informer := cache.Informer[*appsv1.ReplicaSet](eyes, cache.InNamespace(c.namespace))
	_, err := informer.AddHandler(func(e cache.Event[*appsv1.ReplicaSet]) {
		set, err := e.Item().Object()
		if err != nil {
			c.t.Error(err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		known := s.all[set.UID]
		if n := *set.Spec.Replicas; len(known) == 0 || known[len(known)-1] != n {
			s.all[set.UID] = append(known, n)
		}
	}, cache.HandlerOptions{Name: c.t.Name(), EveryStep: true})
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// take returns the sizes that each ReplicaSet has had since the last time, that at the
// end included.
func (s *sizes) take() map[types.UID][]int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := map[types.UID][]int32{}
	for uid, all := range s.all {
		taken[uid] = all
		s.all[uid] = all[len(all)-1:]
	}
	return taken
}

// mortal is a controller whose processes are killed after one to three of their writes. So whatever a
// process has remembered of its work is lost after each step.
type mortal struct {
	*cluster
	alone *managertest.Alone
	lives int
}

// settle starts processes until one of them is left with nothing to do.
func (m *mortal) settle(step string, done func() bool) {
	m.t.Helper()
	for end := time.Now().Add(patience); ; {
		m.alone.Start(1 + m.lives%3)
		m.lives++
		again := time.NewTicker(20 * time.Millisecond)
		ended := false
		for !ended && !done() {
			select {
			case <-m.alone.Ended():
				ended = true
			case <-again.C:
			}
			if time.Now().After(end) {
				m.t.Fatalf("%s: not done after %s; the log:\n%s", step, patience, m.alone.Log())
			}
		}
		again.Stop()
		if !ended {
			m.alone.Kill()
			return
		}
	}
}

// check looks for writes that changed nothing, and for rights that were missing. It returns how many
// writes of each method there were.
func (m *mortal) check() map[string]int {
	m.t.Helper()
	methods := map[string]int{}
	for _, write := range m.alone.Writes() {
		methods[write.Method]++
		if write.Idle {
			m.t.Errorf("%s %s changed nothing", write.Method, write.Path)
		}
		if write.Blind {
			m.t.Errorf("%s %s does not say of which UID", write.Method, write.Path)
		}
	}
	if log := m.alone.Log(); strings.Contains(log, "forbidden") || strings.Contains(log, "lack a right") || strings.Contains(log, "level=ERROR") {
		m.t.Errorf("it lacks something: %s", log)
	}
	m.t.Logf("%d processes made %d writes", m.lives, len(m.alone.Writes()))
	return methods
}

// The process hears the answer to one or two of its writes, or to none at all, before it
// is killed: whatever it has remembered of its work is lost after each step.
func TestADeploymentControllerThatIsKilledAfterItsWritesMakesEachOfThemOnce(t *testing.T) {
	const replicas, most, least = 4, 5, 3
	c := &cluster{Cluster: shared.Get(t), t: t}
	c.namespace = c.Namespace(t)
	c.run(c.Restricted(t, replicaset.Rights()), replicaSets)
	alone := managertest.NewAlone(t, c.Cluster, deployment.Name, deployment.Rights())
	s := watchSizes(c)

	m := &mortal{cluster: c, alone: alone}
	settle := func(step string) {
		t.Helper()
		m.settle(step, func() bool {
			d := c.deployment("web")
			st := &d.Status
			return st.ObservedGeneration == d.Generation && st.UpdatedReplicas == *d.Spec.Replicas && st.Replicas == *d.Spec.Replicas && st.AvailableReplicas == *d.Spec.Replicas
		})
	}
	one, few := intstr.FromInt32(1), int32(2)
	c.create("web", replicas, "0s", func(d *appsv1.Deployment) {
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &one, MaxUnavailable: &one}
		d.Spec.RevisionHistoryLimit = &few
	})
	settle("the first rollout")

	w := watchPods(c, func(version string, pods map[string]*corev1.Pod) error {
		count, available := 0, 0
		for _, pod := range pods {
			if alive(pod) {
				count++
				if ready(pod) {
					available++
				}
			}
		}
		if count > most || available < least {
			return fmt.Errorf("resourceVersion %s: %d Pods of at most %d, %d available of at least %d", version, count, most, available, least)
		}
		return nil
	})
	for _, step := range [][]string{
		{"set", "image", "deployment/web", "main=web:2"},
		{"set", "image", "deployment/web", "main=web:3"},
		{"rollout", "undo", "deployment/web"},
	} {
		s.take()
		c.kubectl(step...)
		settle(strings.Join(step, " "))
		for uid, all := range s.take() {
			if back := slices.Clone(all); !slices.IsSorted(all) {
				if slices.Reverse(back); !slices.IsSorted(back) {
					t.Errorf("kubectl %s: ReplicaSet %s went there and back: %v", strings.Join(step, " "), uid, all)
				}
			}
		}
	}
	w.end(c)
	c.kubectl("scale", "deployment/web", "--replicas=7")
	settle("scaling up")

	if n := len(s.take()); n != 3 {
		t.Errorf("%d ReplicaSets were there for 3 templates", n)
	}
	if r := c.deployment("web").Annotations["deployment.kubernetes.io/revision"]; r != "4" {
		t.Errorf("the revision is %s after 3 templates and the way back to one of them, want 4", r)
	}
	if made := m.check()[http.MethodPost]; made != 3 {
		t.Errorf("%d creates of ReplicaSets, want 3", made)
	}
}
