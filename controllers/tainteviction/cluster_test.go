// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package tainteviction

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// shared has no nodes of its own: each test brings its own, which no kubelet plays.
var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// newNode creates a node for a test.
func newNode(t *testing.T, cluster *controlplanetest.Cluster) string {
	t.Helper()
	nodes := client.For[*corev1.Node](cluster.Client)
	node, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := cluster.Kubectl("delete", "node", node.Name); err != nil {
			t.Error(err)
		}
	})
	return node.Name
}

func newPod(t *testing.T, cluster *controlplanetest.Cluster, namespace, name, node string, tolerations ...corev1.Toleration) object.Key {
	t.Helper()
	pod, err := client.For[*corev1.Pod](cluster.Client).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, Tolerations: tolerations, TerminationGracePeriodSeconds: new(int64(3600)),
			Containers: []corev1.Container{{Name: "web", Image: "nginx"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return object.KeyOf(pod)
}

// Under the declared rights and no others.
func TestPodsOfATaintedNodeGoAndSayWhy(t *testing.T) {
	cluster := shared.Get(t)
	namespace, node := cluster.Namespace(t), newNode(t, cluster)
	eyes := managertest.Run(t, cluster.Config)
	managertest.Run(t, cluster.Restricted(t, Rights()), managertest.Making(New, Defaults()))
	atOnce := newPod(t, cluster, namespace, "at-once", node)
	soon := newPod(t, cluster, namespace, "soon", node, tolerate("gone", 1))
	hour := newPod(t, cluster, namespace, "hour", node, tolerate("gone", 3600))
	stays := newPod(t, cluster, namespace, "stays", node, tolerate("gone", forever))

	if _, err := cluster.Kubectl("taint", "node", node, "gone:NoExecute"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []object.Key{atOnce, soon} {
		controlplanetest.Await(t, eyes, key, "the Pod is being deleted and says why", func(pod *corev1.Pod) bool {
			return pod.DeletionTimestamp != nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByTaintManager" && c.ObservedGeneration > 0
			})
		})
	}
	if _, err := cluster.Kubectl("taint", "node", node, "gone:NoExecute-"); err != nil {
		t.Fatal(err)
	}
	for about, note := range map[object.Key]string{
		atOnce: "Marking for deletion Pod " + atOnce.String(),
		soon:   "Marking for deletion Pod " + soon.String(),
		hour:   "Cancelling deletion of Pod " + hour.String(),
	} {
		controlplanetest.Eventually(t, "the event: "+note, func() bool {
			out, err := cluster.Kubectl("get", "events", "-n", namespace, "--field-selector=reason=TaintManagerEviction,involvedObject.name="+about.Name, "-o", "jsonpath={.items[*].message}")
			return err == nil && strings.Contains(out, note)
		})
	}
	for _, key := range []object.Key{hour, stays} {
		pod, err := client.For[*corev1.Pod](cluster.Client).Get(t.Context(), key)
		if err != nil || pod.DeletionTimestamp != nil {
			t.Errorf("%s: %v, deleted %v; want that it stays", key, err, pod.DeletionTimestamp)
		}
	}
}

func TestAProcessThatIsKilledInBetweenEvictsEachPodOnce(t *testing.T) {
	const pods = 60
	cluster := shared.Get(t)
	namespace, node := cluster.Namespace(t), newNode(t, cluster)
	eyes := managertest.Run(t, cluster.Config)
	var keys []object.Key
	for i := range pods {
		keys = append(keys, newPod(t, cluster, namespace, fmt.Sprintf("web-%02d", i), node))
	}
	other := newPod(t, cluster, namespace, "elsewhere", newNode(t, cluster))
	if _, err := cluster.Kubectl("taint", "node", node, "gone:NoExecute"); err != nil {
		t.Fatal(err)
	}
	var writes []string
	for round := range 3 {
		p := managertest.Run(t, cluster.Config, managertest.Making(New, Options{Workers: 1}))
		controlplanetest.Eventually(t, "some work done, or all", func() bool {
			n := len(p.Writes()) // two for each Pod; nobody has counted the last one of each that was killed
			return n >= 10*(round+1) || len(writes)+n >= 2*pods-2
		})
		p.Kill()
		writes = append(writes, p.Writes()...)
	}
	p := managertest.Run(t, cluster.Config, managertest.Making(New, Defaults()))
	for _, key := range keys {
		controlplanetest.Await(t, eyes, key, "the Pod is being deleted", func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	}
	p.Stop()
	writes = append(writes, p.Writes()...)
	// A write whose answer a killed process did not live to see is done and not
	// counted: so there may be fewer, and none twice.
	slices.Sort(writes)
	if once := slices.Compact(slices.Clone(writes)); len(once) != len(writes) {
		t.Errorf("of %d writes %d were another's", len(writes), len(writes)-len(once))
	}
	if pod, err := client.For[*corev1.Pod](cluster.Client).Get(t.Context(), other); err != nil || pod.DeletionTimestamp != nil {
		t.Errorf("the Pod elsewhere: %v, deleted %v", apierrors.ReasonForError(err), pod.DeletionTimestamp)
	}
}
