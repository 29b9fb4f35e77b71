// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// shared has no nodes: each test brings its own, which no kubelet plays.
var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// hasty looks often and has short quarantines.
var hasty = Options{Workers: 16, Period: 50 * time.Millisecond, Quarantine: 300 * time.Millisecond}

// world is a namespace of a real cluster, and who looks on.
type world struct {
	*controlplanetest.Cluster
	t         *testing.T
	namespace string
	eyes      *managertest.Process
	pods      client.Typed[*corev1.Pod]
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Cluster: shared.Get(t), t: t}
	w.namespace = w.Namespace(t)
	w.eyes = managertest.Run(t, w.Config)
	w.pods = client.For[*corev1.Pod](w.Client)
	return w
}

func (w *world) node(taints ...corev1.Taint) string {
	w.t.Helper()
	node, err := client.For[*corev1.Node](w.Client).Create(w.t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Spec: corev1.NodeSpec{Taints: taints},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return node.Name
}

func (w *world) pod(name, node string, change ...func(*corev1.Pod)) object.Key {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, SchedulerName: "nobody", TerminationGracePeriodSeconds: new(int64(3600)),
			Containers: []corev1.Container{{Name: "web", Image: "nginx"}},
		},
	}
	for _, f := range change {
		f(pod)
	}
	made, err := w.pods.Create(w.t.Context(), pod)
	if err != nil {
		w.t.Fatal(err)
	}
	return object.KeyOf(made)
}

func (w *world) end(key object.Key) {
	w.t.Helper()
	patch, err := client.MergePatch(map[string]any{"status": map[string]any{"phase": corev1.PodSucceeded}})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.pods.Sub("status").Patch(w.t.Context(), key, patch); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) delete(key object.Key) {
	w.t.Helper()
	if err := w.pods.Delete(w.t.Context(), key); err != nil {
		w.t.Fatal(err)
	}
}

// until waits until these Pods are there and no others.
func (w *world) until(what string, names ...string) {
	w.t.Helper()
	pods := cache.Informer[*corev1.Pod](w.eyes)
	var there []string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("%s: there are %q, not %q", what, there, names)
		}
	}()
	controlplanetest.Eventually(w.t, what, func() bool {
		there = nil
		for key := range pods.Snapshot().Namespace(w.namespace) {
			there = append(there, key.Name)
		}
		slices.Sort(there)
		return slices.Equal(there, names)
	})
}

// Under the declared rights and no others.
func TestWhatNobodyElseRemovesGoes(t *testing.T) {
	w := newWorld(t)
	up := w.node()
	out := w.node(corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
	w.pod("runs", up)
	w.pod("pending", "")
	w.pod("orphan", "nobody-has-this-name")
	held := w.pod("orphan-held", "nobody-has-this-name", func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/wait"} })
	w.pod("runs-out", out)
	w.delete(w.pod("terminates-out", out))
	w.delete(w.pod("terminates-up", up))
	w.delete(w.pod("unscheduled-held", "", func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/wait"} }))
	managertest.Run(t, w.Restricted(t, Rights()), managertest.Making(New, hasty))
	w.until("the rest stays", "orphan-held", "pending", "runs", "runs-out", "terminates-up", "unscheduled-held")

	controlplanetest.Await(t, w.eyes, held, "the orphan that is held has failed and says why", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodFailed && deleted(pod) && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByPodGC" && c.ObservedGeneration > 0
		})
	})
	controlplanetest.Await(t, w.eyes, object.Key{Namespace: w.namespace, Name: "unscheduled-held"}, "the Pod without node has failed", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodFailed
	})
}

func TestAProcessThatIsKilledInBetweenRemovesNoPodTooMany(t *testing.T) {
	const ended, threshold = 60, 10
	w := newWorld(t)
	t.Cleanup(func() { // the threshold is the whole cluster's: what stays would count in the next test
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), controlplanetest.Patience)
		defer cancel()
		if err := w.pods.DeleteCollection(ctx, client.Selection{Namespace: w.namespace}, client.GracePeriod(0)); err != nil {
			t.Error(err)
		}
	})
	node := w.node()
	var stay []string
	for i := range ended {
		name := fmt.Sprintf("done-%02d", i)
		w.end(w.pod(name, node))
		// Creation times are whole seconds, and names break the tie.
		if i >= ended-threshold {
			stay = append(stay, name)
		}
	}
	w.pod("runs", node)
	o := hasty
	o.Workers, o.TerminatedPodThreshold = 1, threshold
	var writes []string
	for range 3 {
		p := managertest.Run(t, w.Config, managertest.Making(New, o))
		controlplanetest.Eventually(t, "some work done, or all", func() bool {
			n := len(p.Writes()) // nobody has counted the last one of each that was killed
			return n >= 5 || len(writes)+n >= ended-threshold-2
		})
		p.Kill()
		writes = append(writes, p.Writes()...)
	}
	p := managertest.Run(t, w.Config, managertest.Making(New, o))
	w.until("the threshold is reached", append(stay, "runs")...)
	p.Stop()
	writes = append(writes, p.Writes()...)
	slices.Sort(writes)
	if once := slices.Compact(slices.Clone(writes)); len(once) != len(writes) || len(writes) > ended-threshold {
		t.Errorf("%d writes for %d Pods, %d of them twice", len(writes), ended-threshold, len(writes)-len(once))
	}
}
