// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controlplane/nodes"
)

func TestNodesAreLikeThoseOfACluster(t *testing.T) {
	c := newCluster(t)
	c.simulate(nodes.Options{Nodes: 4, Pods: 50})
	zones := map[string]int{}
	var ranges []netip.Prefix
	for i := range 4 {
		name := fmt.Sprintf("node-%d", i)
		node, err := c.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		c.check(err)
		for label, want := range map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			nodes.ManagedLabel: "true", corev1.LabelTopologyRegion: "sim-1",
		} {
			if got := node.Labels[label]; got != want {
				t.Errorf("%s: label %s is %q, want %q", name, label, got, want)
			}
		}
		zones[node.Labels[corev1.LabelTopologyZone]]++
		if got := node.Status.Allocatable.Pods().Value(); got != 50 {
			t.Errorf("%s takes %d Pods, want 50", name, got)
		}
		if node.Status.Capacity.Cpu().IsZero() || node.Status.Capacity.Memory().IsZero() {
			t.Errorf("%s has capacity %v", name, node.Status.Capacity)
		}
		if node.Status.NodeInfo.KubeletVersion == "" || len(node.Status.Addresses) != 3 || node.Status.DaemonEndpoints.KubeletEndpoint.Port != 0 {
			t.Errorf("%s: info %+v, addresses %v", name, node.Status.NodeInfo, node.Status.Addresses)
		}
		if len(node.Spec.PodCIDRs) != 2 {
			t.Fatalf("%s has Pod ranges %v, want one of each family", name, node.Spec.PodCIDRs)
		}
		for _, cidr := range node.Spec.PodCIDRs {
			ranges = append(ranges, netip.MustParsePrefix(cidr))
		}
		lease, err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), name, metav1.GetOptions{})
		c.check(err)
		if *lease.Spec.HolderIdentity != name || lease.OwnerReferences[0].UID != node.UID || time.Since(lease.Spec.RenewTime.Time) > patience {
			t.Errorf("lease of %s: %+v", name, lease)
		}
	}
	if len(zones) != 3 {
		t.Errorf("nodes by zone: %v, want three zones", zones)
	}
	for i, a := range ranges {
		for _, b := range ranges[i+1:] {
			if a.Overlaps(b) {
				t.Errorf("Pod ranges %s and %s overlap", a, b)
			}
		}
	}
}

func TestNodesOfEarlierRunsAreKeptOrRemovedAndOthersLeftAlone(t *testing.T) {
	c := newCluster(t)
	stop := c.simulate(nodes.Options{Nodes: 3})
	get := func(name string) (*corev1.Node, error) {
		return c.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	}
	first, err := get("node-0")
	c.check(err)
	stop()

	// node-1 is somebody else's now, as is one whose name we would never give.
	for _, name := range []string{"node-1", "machine"} {
		if name == "node-1" {
			c.check(c.client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}))
			// As the garbage collector would, which does not run here.
			c.check(c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
		_, err := c.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		c.check(err)
		t.Cleanup(func() {
			c.check(c.client.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}))
		})
	}
	c.begin(nodes.Options{Nodes: 2})
	c.eventually(func() (bool, string) {
		_, err := get("node-2")
		return apierrors.IsNotFound(err), "node-2 is still there"
	})
	c.create(c.pod("on-ours"))
	c.becomes("on-ours", "ready", ready)

	again, err := get("node-0")
	c.check(err)
	if again.UID != first.UID || !slices.Equal(again.Spec.PodCIDRs, first.Spec.PodCIDRs) {
		t.Errorf("node-0 was made anew: %s %v, before %s %v", again.UID, again.Spec.PodCIDRs, first.UID, first.Spec.PodCIDRs)
	}
	for _, name := range []string{"node-1", "machine"} {
		node, err := get(name)
		c.check(err)
		if len(node.Status.Conditions) != 0 || node.Labels[nodes.ManagedLabel] != "" {
			t.Errorf("%s, which is not simulated, was changed: %+v", name, node)
		}
	}
}

func TestScheduledPodsRunWithAddressesOfTheirOwn(t *testing.T) {
	c := newCluster(t)
	stop := c.simulate(nodes.Options{Nodes: 3})
	const count = 300
	begun := time.Now()
	for i := range count {
		pod := c.pod(fmt.Sprintf("web-%d", i))
		pod.Spec.NodeName = ""
		c.create(pod)
	}
	created := time.Now()
	all := func() []corev1.Pod {
		list, err := c.client.CoreV1().Pods(c.namespace).List(t.Context(), metav1.ListOptions{})
		c.check(err)
		return list.Items
	}
	bound := time.Time{}
	c.eventually(func() (bool, string) {
		assigned, running := 0, 0
		for _, pod := range all() {
			if pod.Spec.NodeName != "" {
				assigned++
			}
			if ready(&pod) {
				running++
			}
		}
		if assigned == count && bound.IsZero() {
			bound = time.Now()
		}
		return running == count, fmt.Sprintf("of %d Pods %d are bound and %d ready", count, assigned, running)
	})
	t.Logf("%d Pods created in %s, bound %s after that, and ready %s later", count,
		created.Sub(begun).Round(time.Millisecond), bound.Sub(created).Round(time.Millisecond), time.Since(bound).Round(time.Millisecond))

	// The addresses of living Pods are known to the next run too.
	stop()
	c.simulate(nodes.Options{Nodes: 3})
	c.create(c.pod("late"))
	c.becomes("late", "ready", ready)

	of := map[string]string{}
	for _, pod := range all() {
		if len(pod.Status.PodIPs) != 2 || len(pod.Status.HostIPs) != 2 {
			t.Fatalf("pod %s has %v on %v", pod.Name, pod.Status.PodIPs, pod.Status.HostIPs)
		}
		for _, ip := range pod.Status.PodIPs {
			if other, taken := of[ip.IP]; taken {
				t.Errorf("pods %s and %s both have %s", pod.Name, other, ip.IP)
			}
			of[ip.IP] = pod.Name
		}
	}
}

func TestPodsDoWhatTheirAnnotationsSay(t *testing.T) {
	c := newCluster(t)
	c.simulate(nodes.Options{Nodes: 1})
	never := func(pod *corev1.Pod) *corev1.Pod {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		return pod
	}
	c.create(never(c.pod("completes", nodes.ExitAfter, "10ms")))
	c.create(never(c.pod("fails", nodes.ExitAfter, "10ms", nodes.ExitCode, "7")))
	c.create(c.pod("crashes", nodes.ExitAfter, "10ms", nodes.ExitCode, "1"))
	c.create(c.pod("slow", nodes.StartAfter, "100ms+100ms", nodes.ReadyAfter, "100ms"))
	c.create(c.pod("unready", nodes.ReadyAfter, "never"))
	c.create(c.pod("pulls", nodes.ImagePull, "error"))
	c.create(c.pod("mistaken", nodes.StartAfter, "soon"))

	c.becomes("completes", "Succeeded", hasPhase(corev1.PodSucceeded))
	failed := c.becomes("fails", "Failed", hasPhase(corev1.PodFailed))
	if got := failed.Status.ContainerStatuses[0].State.Terminated.ExitCode; got != 7 {
		t.Errorf("the exit code is %d, want 7", got)
	}
	crashed := c.becomes("crashes", "CrashLoopBackOff", waitsFor("CrashLoopBackOff"))
	if s := crashed.Status.ContainerStatuses[0]; s.RestartCount == 0 || s.LastTerminationState.Terminated.ExitCode != 1 || crashed.Status.Phase != corev1.PodRunning {
		t.Errorf("crash loop: phase %s, container %+v", crashed.Status.Phase, s)
	}
	c.becomes("slow", "ready", ready)
	c.becomes("pulls", "ImagePullBackOff", waitsFor("ImagePullBackOff"))
	unready := c.becomes("unready", "Running", hasPhase(corev1.PodRunning))
	if ready(unready) {
		t.Error("a Pod that is never ready is")
	}
	c.becomes("mistaken", "ready", ready)
	c.eventually(func() (bool, string) {
		events, err := c.client.CoreV1().Events(c.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=mistaken"})
		c.check(err)
		return len(events.Items) == 1 && events.Items[0].Reason == "InvalidSimulation" && strings.Contains(events.Items[0].Message, `"soon"`),
			fmt.Sprintf("events of the Pod with a mistake: %+v", events.Items)
	})
}

func TestDeletedPodsGoAndFinalizersHoldThem(t *testing.T) {
	c := newCluster(t)
	c.simulate(nodes.Options{Nodes: 1, Grace: 100 * time.Millisecond})
	held := c.pod("held")
	held.Finalizers = []string{"example.com/hold"}
	c.create(held)
	c.create(c.pod("free"))
	for _, name := range []string{"held", "free"} {
		c.becomes(name, "ready", ready)
		c.check(c.client.CoreV1().Pods(c.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	c.gone("free")
	pod := c.becomes("held", "ended, its grace period over", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodFailed && *pod.DeletionGracePeriodSeconds == 0
	})
	if ready(pod) {
		t.Error("an ended Pod is ready")
	}
	_, err := c.client.CoreV1().Pods(c.namespace).Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	c.check(err)
	c.gone("held")
}

func TestSilentNodeStandsStillUntilItIsBack(t *testing.T) {
	c := newCluster(t)
	c.simulate(nodes.Options{Nodes: 1})
	annotate := func(value string) *corev1.Node {
		node, err := c.client.CoreV1().Nodes().Patch(t.Context(), "node-0", types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+nodes.NodeSwitch+`":`+value+`}}}`), metav1.PatchOptions{})
		c.check(err)
		return node
	}
	annotate(`"silent"`)
	t.Cleanup(func() {
		_, err := c.client.CoreV1().Nodes().Patch(context.WithoutCancel(t.Context()), "node-0", types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+nodes.NodeSwitch+`":null}}}`), metav1.PatchOptions{})
		c.check(err)
	})
	// The simulation hears of it some time later than we do; what a node-lifecycle
	// controller writes is a sign that it has: nobody puts it right.
	spoil := func() {
		node, err := c.client.CoreV1().Nodes().Get(t.Context(), "node-0", metav1.GetOptions{})
		c.check(err)
		for i := range node.Status.Conditions {
			node.Status.Conditions[i].Status = corev1.ConditionUnknown
		}
		if _, err = c.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			c.check(err)
		}
	}
	nodeIs := func(status corev1.ConditionStatus) (bool, string) {
		node, err := c.client.CoreV1().Nodes().Get(t.Context(), "node-0", metav1.GetOptions{})
		c.check(err)
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status == status, fmt.Sprintf("Ready is %s, want %s", condition.Status, status)
			}
		}
		return false, "the Node has no condition Ready"
	}
	c.eventually(func() (bool, string) {
		spoil()
		time.Sleep(100 * time.Millisecond)
		return nodeIs(corev1.ConditionUnknown)
	})
	c.create(c.pod("waits"))
	time.Sleep(100 * time.Millisecond) // what must not happen has no sign; this gives it a chance
	if pod := c.becomes("waits", "there", func(*corev1.Pod) bool { return true }); pod.Status.PodIP != "" {
		t.Errorf("a Pod of a silent Node moves: %+v", pod.Status)
	}

	annotate("null")
	c.becomes("waits", "ready", ready)
	c.eventually(func() (bool, string) { return nodeIs(corev1.ConditionTrue) })
}

func TestSimulationOutlivesTheAPIServer(t *testing.T) {
	c := newFragileCluster(t)
	c.simulate(nodes.Options{Nodes: 1})
	c.create(c.pod("before"))
	c.becomes("before", "ready", ready)
	// Its container ends while nobody can be told.
	once := c.pod("ends", nodes.ExitAfter, "1500ms")
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	c.create(once)
	c.becomes("ends", "begun", func(pod *corev1.Pod) bool { return pod.Status.Phase != corev1.PodPending })

	c.check(c.StopServer(t.Context(), 0))
	time.Sleep(3 * time.Second)
	c.check(c.StartServer(t.Context(), 0))

	c.becomes("ends", "Succeeded", hasPhase(corev1.PodSucceeded))
	c.create(c.pod("after"))
	c.becomes("after", "ready", ready)
	c.check(c.client.CoreV1().Pods(c.namespace).Delete(t.Context(), "before", metav1.DeleteOptions{}))
	c.gone("before")
}

func TestSimulationWaitsForAnAPIServerThatIsNotThereYet(t *testing.T) {
	c := newFragileCluster(t)
	c.check(c.StopServer(t.Context(), 0))
	isReady := make(chan struct{})
	c.begin(nodes.Options{Nodes: 1, OnReady: func() { close(isReady) }})
	time.Sleep(500 * time.Millisecond)
	c.check(c.StartServer(t.Context(), 0))
	select {
	case <-isReady:
	case <-time.After(patience):
		t.Error("the simulation does not begin")
	}
}

func TestNothingIsLeftOfAStoppedSimulation(t *testing.T) {
	c := newCluster(t)
	stop := c.simulate(nodes.Options{Nodes: 3})
	for i := range 30 {
		c.create(c.pod(fmt.Sprintf("web-%d", i), nodes.ExitAfter, "10ms"))
	}
	c.becomes("web-0", "Running", hasPhase(corev1.PodRunning))
	stop() // in the middle of it
	c.eventually(func() (bool, string) {
		for goroutine := range strings.SplitSeq(stacks(), "\n\n") {
			if strings.Contains(goroutine, "/nodes.") && !strings.Contains(goroutine, "nodes_test.") {
				return false, "still running:\n" + goroutine
			}
		}
		return true, ""
	})
}

func TestStagesOfTheUserComeFirst(t *testing.T) {
	c := newCluster(t)
	file := filepath.Join(t.TempDir(), "stages.yaml")
	c.check(os.WriteFile(file, []byte(maintenance), 0o600))
	c.simulate(nodes.Options{Nodes: 1, StageFiles: []string{file}})
	c.create(c.pod("plain"))
	staged := c.pod("staged")
	staged.Labels = map[string]string{"stage": "yes"}
	c.create(staged)

	c.becomes("plain", "ready", ready)
	pod := c.becomes("staged", "failed by its Stage", hasPhase(corev1.PodFailed))
	if pod.Status.Reason != "Maintenance" || pod.Status.PodIP == "" || pod.Status.HostIP == "" {
		t.Errorf("status: %+v", pod.Status)
	}
	// The Stage does not select what is being deleted: our own rules end it.
	c.check(c.client.CoreV1().Pods(c.namespace).Delete(t.Context(), "staged", metav1.DeleteOptions{}))
	c.gone("staged")
}

const maintenance = `# A Stage as KWOK knows it.
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: maintenance
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchLabels: {stage: "yes"}
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Pending]}
  delay: {durationMilliseconds: 50}
  next:
    event: {type: Warning, reason: Maintenance, message: the machine is in maintenance}
    statusTemplate: |
      phase: Failed
      reason: Maintenance
      hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
      podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}
`
