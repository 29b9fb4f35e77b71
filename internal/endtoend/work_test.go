// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

// A work is what users want of controllers, and then want otherwise: a Deployment that is
// rolled out, a node that is drained. A manager is replaced, or the server goes away, in the
// middle of it.
type work interface {
	// change wants something else. What was wanted before has come about.
	change()
	// begun reports whether controllers have begun with the last change.
	begun() bool
	// missing says what is yet to come about, and returns "" when all is as it is wanted.
	missing() string
	// inBounds returns an error if the Pods are fewer or more than may be at any time. It is
	// asked for each version of a Pod once the first wish has come about.
	inBounds(pods map[types.UID]*corev1.Pod) error
}

// works are all works by name, the slow ones first. Each has a namespace of its own and wants
// something at once.
var works = []struct {
	name  string
	begin func(*stage) work
}{
	{"a drained node", newDrain},
	{"a Deployment", newDeployed},
	{"a StatefulSet", newMembers},
	{"a DaemonSet", newDaemons},
	{"Jobs", newJobs},
	{"an autoscaler", newAutoscaled},
	{"CronJobs", newCronJobs},
}

// workControllers are the controllers that works need, as --controllers has them. Others may
// run as well.
const workControllers = "deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller,job-controller,disruption-controller,cronjob-controller," +
	"horizontal-pod-autoscaler-controller,persistentvolume-binder-controller,persistentvolume-attach-detach-controller,persistentvolumeclaim-protection-controller"

// autoscaling has both managers read the metrics of autoscalers more often than every 15 s.
const autoscaling = "--horizontal-pod-autoscaler-sync-period=1s"

// stage is where a work takes place.
type stage struct {
	*controlplanetest.Cluster
	t         *testing.T
	namespace string
	pods      *podWatch
	theirs    *atomic.Bool // kube-controller-manager works, or what it began is not done
}

func (s *stage) key(name string) object.Key { return object.Key{Namespace: s.namespace, Name: name} }

// site is a cluster with all works.
type site struct {
	t       *testing.T
	cluster *controlplanetest.Cluster
	works   []work
	stages  []*stage
	theirs  atomic.Bool // as of each stage
}

// newSite wants all works for the first time.
func newSite(t *testing.T, cluster *controlplanetest.Cluster) *site {
	t.Helper()
	s := &site{t: t, cluster: cluster}
	for _, w := range works {
		namespace := cluster.Namespace(t)
		at := &stage{Cluster: cluster, t: t, namespace: namespace, pods: watchPods(t, cluster.Client, namespace), theirs: &s.theirs}
		s.stages = append(s.stages, at)
		s.works = append(s.works, w.begin(at))
	}
	return s
}

// done waits until all that is wanted has come about. From then on the bounds hold.
func (s *site) done() {
	s.t.Helper()
	end := time.Now().Add(patience)
	for i, w := range s.works {
		for missing := w.missing(); missing != ""; missing = w.missing() {
			if time.Now().After(end) {
				s.t.Fatalf("%s: after %s: %s", works[i].name, patience, missing)
			}
			time.Sleep(50 * time.Millisecond)
		}
		s.stages[i].pods.holds(w.inBounds)
		if _, err := s.stages[i].pods.seen(); err != nil {
			s.t.Fatalf("%s: %v", works[i].name, err)
		}
	}
}

// middle changes what is wanted, and returns in the middle of it.
func (s *site) middle() {
	s.t.Helper()
	for i, w := range s.works {
		w.change()
		until(s.t, "the middle of "+works[i].name, w.begun)
	}
	var left []string
	for i, w := range s.works {
		if w.missing() != "" {
			left = append(left, works[i].name)
		}
	}
	s.t.Logf("not done: %s", strings.Join(left, ", "))
	if len(left) == 0 {
		s.t.Error("all works were done before their middle was seen")
	}
}

// uids returns the identities of all Pods of the site.
func (s *site) uids() (all []string) {
	s.t.Helper()
	for _, at := range s.stages {
		pods, _, err := client.For[*corev1.Pod](s.cluster.Client).List(s.t.Context(), client.Selection{Namespace: at.namespace})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, pod := range pods {
			all = append(all, strings.Join([]string{pod.Namespace, pod.Name, string(pod.UID)}, " "))
		}
	}
	slices.Sort(all)
	return all
}

// gone returns what is in the first list and not in the second.
func gone(before, after []string) []string {
	return slices.DeleteFunc(slices.Clone(before), func(s string) bool { return slices.Contains(after, s) })
}
