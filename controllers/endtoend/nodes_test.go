// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/nodettl"
	"github.com/setpoint-io/setpoint/controllers/podgc"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/serviceaccount"
	"github.com/setpoint-io/setpoint/controllers/tainteviction"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// datacenter is a cluster of machines, and the controllers that see to machines.
type datacenter struct {
	*controlplanetest.Cluster
	t         *testing.T
	namespace string
	eyes      *managertest.Process
}

// The simulated machines beat every 10 s, and a zone has a third of them in turn.
const machines = 15

// patient has a zone give up one Node at once, and the next in 50 s.
func patient() nodelifecycle.Options {
	o := nodelifecycle.Defaults()
	o.NodeMonitorPeriod, o.NodeMonitorGracePeriod, o.NodeEvictionRate = 200*time.Millisecond, 14*time.Second, 0.02
	return o
}

func newDatacenter(t *testing.T) *datacenter {
	t.Helper()
	d := &datacenter{Cluster: controlplanetest.Start(t, controlplanetest.Options{Nodes: machines, Bare: true}), t: t}
	d.namespace = d.Namespace(t)
	d.eyes = managertest.Run(t, d.Config)
	return d
}

// manage runs the controllers, each with its own rights alone.
func (d *datacenter) manage() (kill func()) {
	d.t.Helper()
	processes := []*managertest.Process{
		managertest.Run(d.t, d.Restricted(d.t, nodelifecycle.Rights()), managertest.Making(nodelifecycle.New, patient())),
		managertest.Run(d.t, d.Restricted(d.t, tainteviction.Rights()), managertest.Making(tainteviction.New, tainteviction.Defaults())),
		managertest.Run(d.t, d.Restricted(d.t, podgc.Rights()), managertest.Making(podgc.New, podgc.Options{Workers: 16, Period: 200 * time.Millisecond, Quarantine: time.Second})),
		managertest.Run(d.t, d.Restricted(d.t, nodettl.Rights()), managertest.Making(nodettl.New, nodettl.Defaults())),
		managertest.Run(d.t, d.Restricted(d.t, serviceaccount.Rights()), managertest.Making(serviceaccount.New, serviceaccount.Defaults())),
		managertest.Run(d.t, d.Restricted(d.t, replicaset.Rights()), managertest.Making(replicaset.New, replicaset.Defaults())),
	}
	return func() {
		for _, p := range processes {
			p.Kill()
		}
	}
}

// zone returns the names of the nodes of a zone, 0, 1 or 2.
func zone(n int) []string {
	var names []string
	for i := n; i < machines; i += 3 {
		names = append(names, fmt.Sprintf("node-%d", i))
	}
	return names
}

func (d *datacenter) kubectl(args ...string) {
	d.t.Helper()
	if _, err := d.Kubectl(args...); err != nil {
		d.t.Fatal(err)
	}
}

// silence has machines lose their power.
func (d *datacenter) silence(names ...string) {
	d.t.Helper()
	d.kubectl(append(append([]string{"annotate", "node"}, names...), "sim.setpoint.io/node=silent")...)
}

// wake gives them their power back.
func (d *datacenter) wake(names ...string) {
	d.t.Helper()
	d.kubectl(append(append([]string{"annotate", "node"}, names...), "sim.setpoint.io/node-")...)
}

func (d *datacenter) await(what, name string, holds func(*corev1.Node) bool) {
	d.t.Helper()
	controlplanetest.Await(d.t, d.eyes, object.Key{Name: name}, name+": "+what, holds)
}

func readyStatus(node *corev1.Node) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

func noExecute(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute })
}

func isWell(node *corev1.Node) bool {
	return readyStatus(node) == corev1.ConditionTrue && len(node.Spec.Taints) == 0 && node.Annotations[corev1.ObjectTTLAnnotationKey] == "0"
}

func isDown(node *corev1.Node) bool { return readyStatus(node) == corev1.ConditionUnknown }

// drained counts the nodes among names that have a NoExecute taint.
func (d *datacenter) drained(names []string) int {
	n := 0
	for _, name := range names {
		node, err := client.For[*corev1.Node](d.Client).Get(d.t.Context(), object.Key{Name: name})
		if err != nil {
			d.t.Fatal(err)
		}
		if noExecute(node) {
			n++
		}
	}
	return n
}

// run creates Pods that bear a node which is down for a second, and waits until they
// run.
func (d *datacenter) run(name string, replicas int32) {
	d.t.Helper()
	bear := func(key string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(1))}
	}
	labels := map[string]string{"app": name}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers:  []corev1.Container{{Name: "web", Image: "nginx"}},
				Tolerations: []corev1.Toleration{bear(corev1.TaintNodeNotReady), bear(corev1.TaintNodeUnreachable)},
			}},
		},
	}
	if _, err := client.For[*appsv1.ReplicaSet](d.Client).Create(d.t.Context(), set); err != nil {
		d.t.Fatal(err)
	}
}

// available waits until so many Pods are.
func (d *datacenter) available(when, name string, n int32) {
	d.t.Helper()
	controlplanetest.Await(d.t, d.eyes, object.Key{Namespace: d.namespace, Name: name}, when, func(set *appsv1.ReplicaSet) bool {
		return set.Status.AvailableReplicas == n && set.Status.Replicas == n
	})
}

// podsOn counts the Pods of the namespace on a node, and how many of them are being
// deleted.
func (d *datacenter) podsOn(node string) (all, going int) {
	for _, item := range cache.Informer[*corev1.Pod](d.eyes).Snapshot().Namespace(d.namespace) {
		pod, err := item.Object()
		if err != nil {
			d.t.Fatal(err)
		}
		if pod.Spec.NodeName != node {
			continue
		}
		if all++; pod.DeletionTimestamp != nil {
			going++
		}
	}
	return all, going
}

func TestMachinesThatFallSilentAreDrainedByZoneAndComeBack(t *testing.T) {
	t.Parallel() // each has a control plane of its own
	const replicas = 30
	d := newDatacenter(t)
	kill := d.manage()
	for i := range machines {
		d.await("a new node is ready and free of taints", fmt.Sprintf("node-%d", i), isWell)
	}
	controlplanetest.Await(t, d.eyes, object.Key{Namespace: d.namespace, Name: "default"}, "the account", func(*corev1.ServiceAccount) bool { return true })
	d.run("web", replicas)
	d.available("all Pods run", "web", replicas)

	// Three of five are more than the threshold of 55 %: the zone is cut off rather
	// than broken. One of five is broken.
	cutOff, broken := zone(0)[:3], zone(1)[:1]
	d.silence(append(slices.Clone(cutOff), broken...)...)
	for _, name := range append(slices.Clone(cutOff), broken...) {
		d.await("a silent node is Unknown", name, isDown)
	}
	d.await("the broken node is drained", broken[0], noExecute)
	controlplanetest.Eventually(t, "all Pods of the broken node are being deleted", func() bool {
		all, going := d.podsOn(broken[0])
		return all > 0 && all == going
	})
	// The zone had leave for one before the others fell silent, and for no more.
	if n := d.drained(cutOff); n > 1 {
		t.Errorf("%d nodes of the zone that is cut off are drained", n)
	}
	if n := d.drained(slices.Concat(zone(0)[3:], zone(1)[1:], zone(2))); n != 0 {
		t.Errorf("%d nodes that are well are drained", n)
	}

	// The next process finds everything as it is, and goes on.
	kill()
	d.manage()
	d.wake(append(slices.Clone(cutOff), broken...)...)
	for _, name := range append(slices.Clone(cutOff), broken...) {
		d.await("a node that is back is ready and free of taints", name, isWell)
	}
	d.available("all Pods run again", "web", replicas)
	controlplanetest.Eventually(t, "nothing is left of what was deleted", func() bool {
		return len(slices.Collect(podNames(d))) == replicas
	})

	// A machine that is gone for good takes its Pods along.
	lost := zone(2)[0]
	d.silence(lost)
	if all, _ := d.podsOn(lost); all == 0 {
		t.Fatalf("no Pod runs on %s", lost)
	}
	d.kubectl("delete", "node", lost)
	controlplanetest.Eventually(t, "no Pod is left on the node that is gone", func() bool {
		all, _ := d.podsOn(lost)
		return all == 0
	})
	d.available("all Pods run elsewhere", "web", replicas)
}

func podNames(d *datacenter) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range cache.Informer[*corev1.Pod](d.eyes).Snapshot().Namespace(d.namespace) {
			if !yield(key.Name) {
				return
			}
		}
	}
}

func TestWithAllMachinesSilentNobodyStaysTaintedAndAllComesBack(t *testing.T) {
	t.Parallel() // each has a control plane of its own
	const replicas = 15
	d := newDatacenter(t)
	d.manage()
	for i := range machines {
		d.await("a new node is ready and free of taints", fmt.Sprintf("node-%d", i), isWell)
	}
	controlplanetest.Await(t, d.eyes, object.Key{Namespace: d.namespace, Name: "default"}, "the account", func(*corev1.ServiceAccount) bool { return true })
	d.run("web", replicas)
	d.available("all Pods run", "web", replicas)
	all := slices.Concat(zone(0), zone(1), zone(2))
	d.silence(all...)
	for _, name := range all {
		d.await("every node is Unknown, and none is drained any more", name, func(node *corev1.Node) bool { return isDown(node) && !noExecute(node) })
	}
	d.wake(all...)
	for _, name := range all {
		d.await("every node is back", name, isWell)
	}
	d.available("all Pods run", "web", replicas)
}
