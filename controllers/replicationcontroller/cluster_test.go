// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicationcontroller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{Options: controlplanetest.Options{Nodes: 3}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// world is a namespace of a real cluster, and who looks on.
type world struct {
	*controlplanetest.Cluster
	t         *testing.T
	namespace string
	eyes      *managertest.Process

	mu   sync.Mutex
	ever map[types.UID]bool // Pods that were seen
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Cluster: shared.Get(t), t: t, ever: map[types.UID]bool{}}
	w.namespace = w.Namespace(t)
	t.Cleanup(func() { // a node has room for 110 Pods: those that stayed would be in the way of other tests
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), controlplanetest.Patience)
		defer cancel()
		all := client.Selection{Namespace: w.namespace}
		if err := errors.Join( // their owners first, or the next test's controllers make them anew
			client.For[*corev1.ReplicationController](w.Client).DeleteCollection(ctx, all, client.Propagation(metav1.DeletePropagationBackground)),
			client.For[*appsv1.ReplicaSet](w.Client).DeleteCollection(ctx, all),
			client.For[*corev1.Pod](w.Client).DeleteCollection(ctx, all, client.GracePeriod(0)),
		); err != nil {
			t.Error(err)
		}
	})
	w.eyes = managertest.Run(t, w.Config)
	_, err := cache.Informer[*corev1.Pod](w.eyes).AddHandler(func(e cache.Event[*corev1.Pod]) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if m := e.Item().Meta(); m.Namespace == w.namespace {
			w.ever[m.UID] = true
		}
	}, cache.HandlerOptions{Name: "world", EveryStep: true})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// made returns how many Pods have ever been seen.
func (w *world) made() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ever)
}

func (w *world) create(replicas int32, change ...func(*corev1.ReplicationController)) *corev1.ReplicationController {
	w.t.Helper()
	rc := newRC(replicas)
	rc.Namespace, rc.Spec.MinReadySeconds = w.namespace, 0
	for _, f := range change {
		f(rc)
	}
	made, err := client.For[*corev1.ReplicationController](w.Client).Create(w.t.Context(), rc)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// until waits for a status of the ReplicationController that is up to date.
func (w *world) until(what string, holds func(corev1.ReplicationControllerStatus) bool) {
	w.t.Helper()
	controlplanetest.Await(w.t, w.eyes, object.Key{Namespace: w.namespace, Name: "web"}, what, func(rc *corev1.ReplicationController) bool {
		return rc.Generation == rc.Status.ObservedGeneration && holds(rc.Status)
	})
}

func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	out, err := w.Kubectl(append(args, "-n", w.namespace)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func available(n int32) func(corev1.ReplicationControllerStatus) bool {
	return func(s corev1.ReplicationControllerStatus) bool {
		return s.AvailableReplicas == n && s.ReadyReplicas == n && s.Replicas == n && s.FullyLabeledReplicas == n
	}
}

// Under the declared rights and no others.
func TestAReplicationControllerComesAliveScalesAdoptsAndReleases(t *testing.T) {
	w := newWorld(t)
	managertest.Run(t, w.Restricted(t, Rights()), managertest.Making(New, Defaults()))
	rc := w.create(3)
	w.until("three available Pods", available(3))
	w.kubectl("scale", "rc/web", "--replicas=1")
	w.until("one available Pod", available(1))

	pods := cache.Informer[*corev1.Pod](w.eyes)
	var stay []string // the others terminate for a second, and may not have been seen to do so yet
	controlplanetest.Eventually(t, "one Pod stays", func() bool {
		stay = nil
		for key, item := range pods.Snapshot().ControlledBy(rc.Namespace, rc.UID) {
			if !item.Meta().Deleting() {
				stay = append(stay, key.Name)
			}
		}
		return len(stay) == 1
	})
	name := stay[0]
	key := object.Key{Namespace: w.namespace, Name: name}
	w.kubectl("label", "pod", name, "app=quarantine", "--overwrite")
	controlplanetest.Await(t, w.eyes, key, "the Pod is released", func(pod *corev1.Pod) bool { return metav1.GetControllerOfNoCopy(pod) == nil })
	w.until("another Pod in its place", available(1))
	w.kubectl("scale", "rc/web", "--replicas=2")
	w.until("two available Pods", available(2))
	w.kubectl("scale", "rc/web", "--replicas=3", "--current-replicas=2")
	w.kubectl("label", "pod", name, "app=web", "--overwrite")
	w.until("three Pods", available(3))

	events := w.kubectl("get", "events", "--field-selector=reportingComponent="+source, "-o", "name")
	if events == "" {
		t.Error("no event names " + source)
	}
}

func TestARefusalIsReportedInTheWordsOfAReplicationController(t *testing.T) {
	w := newWorld(t)
	managertest.Run(t, w.Config, managertest.Making(New, Defaults()))
	w.create(3, func(rc *corev1.ReplicationController) { rc.Spec.Template.Spec.ServiceAccountName = "late" })
	w.until("the condition", func(s corev1.ReplicationControllerStatus) bool {
		return len(s.Conditions) == 1 && s.Conditions[0].Type == corev1.ReplicationControllerReplicaFailure && s.Conditions[0].Reason == "FailedCreate"
	})
	w.kubectl("create", "serviceaccount", "late")
	w.until("three Pods and no condition", func(s corev1.ReplicationControllerStatus) bool { return available(3)(s) && len(s.Conditions) == 0 })
}

func TestNoPodTooManyIsMadeOverKilledProcesses(t *testing.T) {
	const replicas, rounds = 60, 6
	w := newWorld(t)
	w.create(replicas)
	for round := range rounds {
		process := managertest.Run(t, w.Config, managertest.Making(New, Options{Workers: 5, Burst: 20}))
		want := (round + 1) * replicas / (rounds + 1)
		controlplanetest.Eventually(t, fmt.Sprintf("%d Pods", want), func() bool { return w.made() >= want })
		process.Kill()
	}
	managertest.Run(t, w.Config, managertest.Making(New, Defaults()))
	w.until("all Pods", available(replicas))
	if n := w.made(); n != replicas {
		t.Errorf("%d Pods were made for %d", n, replicas)
	}
}

// Both look for loose Pods in the same informer, by one index.
func TestReplicaSetsAndReplicationControllersAreKeptBesideEachOther(t *testing.T) {
	w := newWorld(t)
	for _, app := range []string{"web", "api"} {
		w.kubectl("run", "loose-"+app, "--image=nginx", "--labels=app="+app)
	}
	managertest.Run(t, w.Config, managertest.Making(New, Defaults()), managertest.Making(replicaset.New, replicaset.Defaults()))
	w.create(2)
	labels := map[string]string{"app": "api"}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "api"}, Spec: appsv1.ReplicaSetSpec{
		Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: *newRC(0).Spec.Template,
	}}
	set.Spec.Template.Labels = labels
	if _, err := client.For[*appsv1.ReplicaSet](w.Client).Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	w.until("two Pods of the ReplicationController", available(2))
	controlplanetest.Await(t, w.eyes, object.KeyOf(set), "two Pods of the ReplicaSet", func(set *appsv1.ReplicaSet) bool {
		return set.Status.AvailableReplicas == 2
	})
	for app, kind := range map[string]string{"web": "ReplicationController", "api": "ReplicaSet"} {
		controlplanetest.Await(t, w.eyes, object.Key{Namespace: w.namespace, Name: "loose-" + app}, "the loose Pod is adopted", func(pod *corev1.Pod) bool {
			owner := metav1.GetControllerOfNoCopy(pod)
			return owner != nil && owner.Kind == kind
		})
	}
	if n := w.made(); n != 4 {
		t.Errorf("there have been %d Pods, want 4: two loose ones, and one more of each kind", n)
	}
}
