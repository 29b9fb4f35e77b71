// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/nodestate"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// shared has no nodes of its own: each test brings those that it needs.
var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// patience is how long a test waits for what should come within seconds.
const patience = 30 * time.Second

// hasty has nodes judged in seconds, and every one that may be tainted is.
var hasty = with(func(o *Options) {
	o.NodeMonitorPeriod, o.NodeMonitorGracePeriod, o.NodeStartupGracePeriod, o.NodeEvictionRate = 50*time.Millisecond, 5*time.Second, 5*time.Second, 1000
})

// start runs the controller on the test's cluster, until the test ends.
func start(t *testing.T, o Options) *manager.Manager {
	t.Helper()
	return run(t, shared.Get(t).Config, func(mgr *manager.Manager) (manager.Runnable, error) { return New(mgr, o) })
}

// run runs controllers with the credentials of config until the test ends.
func run(t *testing.T, config *rest.Config, controllers ...func(*manager.Manager) (manager.Runnable, error)) *manager.Manager {
	t.Helper()
	mgr, err := manager.New(config, manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	for _, build := range controllers {
		c, err := build(mgr)
		if err != nil {
			t.Fatal(err)
		}
		if err := mgr.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	return mgr
}

// newNode creates a node without a kubelet, which is gone after the test. It is
// alone in its zone, and posts one status.
func newNode(t *testing.T, mgr *manager.Manager, ready corev1.ConditionStatus) *corev1.Node {
	t.Helper()
	nodes := client.For[*corev1.Node](mgr.Client())
	node, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-", Labels: map[string]string{corev1.LabelOSStable: "linux", corev1.LabelArchStable: "arm64"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nodes.Delete(context.WithoutCancel(t.Context()), object.KeyOf(node)); err != nil {
			t.Error(err)
		}
	})
	return post(t, mgr, node.Name, corev1.NodeReady, ready)
}

// post has the node's kubelet post a condition.
func post(t *testing.T, mgr *manager.Manager, node string, kind corev1.NodeConditionType, status corev1.ConditionStatus) *corev1.Node {
	t.Helper()
	now := metav1.Now()
	patch, err := client.StrategicPatch(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: kind, Status: status, Reason: "Posted", LastHeartbeatTime: now, LastTransitionTime: now,
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	posted, err := client.For[*corev1.Node](mgr.Client()).Sub("status").Patch(t.Context(), object.Key{Name: node}, patch)
	if err != nil {
		t.Fatal(err)
	}
	return posted
}

// cordon sets or lifts the node's cordon.
func cordon(t *testing.T, mgr *manager.Manager, node string, on bool) {
	t.Helper()
	patch, err := client.MergePatch(map[string]any{"spec": map[string]any{"unschedulable": on}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.For[*corev1.Node](mgr.Client()).Patch(t.Context(), object.Key{Name: node}, patch); err != nil {
		t.Fatal(err)
	}
}

// tainted holds of nodes with these taints, in any order.
func tainted(want ...string) func(*corev1.Node) bool {
	slices.Sort(want)
	return func(node *corev1.Node) bool {
		got := texts(node.Spec.Taints)
		slices.Sort(got)
		return slices.Equal(got, want)
	}
}

// newLease creates the node's Lease, which is gone after the test.
func newLease(t *testing.T, mgr *manager.Manager, node string) *coordinationv1.Lease {
	t.Helper()
	leases := client.For[*coordinationv1.Lease](mgr.Client())
	_, err := client.For[*corev1.Namespace](mgr.Client()).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	lease, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := leases.Delete(context.WithoutCancel(t.Context()), object.KeyOf(lease)); err != nil {
			t.Error(err)
		}
	})
	return lease
}

// beats renews the node's Lease until the test ends.
func beats(t *testing.T, mgr *manager.Manager, node string) {
	t.Helper()
	leases := client.For[*coordinationv1.Lease](mgr.Client())
	lease := newLease(t, mgr, node)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		tick := time.NewTicker(hasty.NodeMonitorGracePeriod / 10)
		defer tick.Stop()
		for renewed := time.Unix(0, 0); ; renewed = renewed.Add(time.Second) { // its clock is wrong
			select {
			case <-tick.C:
			case <-ctx.Done():
				ended <- nil
				return
			}
			patch, err := client.MergePatch(map[string]any{"spec": map[string]any{"renewTime": metav1.NewMicroTime(renewed)}})
			if err == nil {
				_, err = leases.Patch(ctx, object.KeyOf(lease), patch)
			}
			if err != nil && ctx.Err() == nil {
				ended <- fmt.Errorf("renewing the lease of %s: %w", node, err)
				return
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// newPod creates a Pod that says it is ready. No scheduler places it.
func newPod(t *testing.T, mgr *manager.Manager, namespace, name, node string) *corev1.Pod {
	t.Helper()
	pods := client.For[*corev1.Pod](mgr.Client())
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: node, SchedulerName: "nobody", Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := client.StrategicPatch(map[string]any{"status": map[string]any{
		"phase": corev1.PodRunning, "conditions": []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if pod, err = pods.Sub("status").Patch(t.Context(), object.KeyOf(pod), patch); err != nil {
		t.Fatal(err)
	}
	return pod
}

func podReady(status corev1.ConditionStatus) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == status
		})
	}
}

func TestTaintsFollowConditionsAndCordonOnARealServer(t *testing.T) {
	mgr := start(t, Defaults())
	node := newNode(t, mgr, corev1.ConditionFalse)
	key := object.KeyOf(node)
	controlplanetest.Await(t, mgr, key, "the taint of a node that is not ready", tainted("node.kubernetes.io/not-ready:NoSchedule"))
	post(t, mgr, node.Name, corev1.NodeReady, corev1.ConditionTrue)
	controlplanetest.Await(t, mgr, key, "no taint on a ready node", tainted())
	post(t, mgr, node.Name, corev1.NodeDiskPressure, corev1.ConditionTrue)
	cordon(t, mgr, node.Name, true)
	controlplanetest.Await(t, mgr, key, "two taints", tainted("node.kubernetes.io/disk-pressure:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"))
	cordon(t, mgr, node.Name, false)
	controlplanetest.Await(t, mgr, key, "one taint", tainted("node.kubernetes.io/disk-pressure:NoSchedule"))
	post(t, mgr, node.Name, corev1.NodeDiskPressure, corev1.ConditionFalse)
	node = controlplanetest.Await(t, mgr, key, "no taint", tainted())
	if node.Labels[labelOSBeta] != "linux" || node.Labels[labelArchBeta] != "arm64" {
		t.Errorf("labels %v, want the beta ones too", node.Labels)
	}
}

func TestHeartbeatsCostNoRunAndNoWrite(t *testing.T) {
	mgr := start(t, Defaults())
	node := newNode(t, mgr, corev1.ConditionTrue)
	other := newNode(t, mgr, corev1.ConditionTrue)
	for _, n := range []*corev1.Node{node, other} {
		controlplanetest.Await(t, mgr, object.KeyOf(n), "taints and labels", func(n *corev1.Node) bool { return tainted()(n) && n.Labels[labelOSBeta] != "" })
	}
	var last *corev1.Node
	for range 20 {
		last = post(t, mgr, node.Name, corev1.NodeReady, corev1.ConditionTrue)
	}
	// What comes after the heartbeats has been worked on, so they have been too.
	cordon(t, mgr, other.Name, true)
	controlplanetest.Await(t, mgr, object.KeyOf(other), "the later change", tainted("node.kubernetes.io/unschedulable:NoSchedule"))
	now, err := client.For[*corev1.Node](mgr.Client()).Get(t.Context(), object.KeyOf(node))
	if err != nil {
		t.Fatal(err)
	}
	if now.ResourceVersion != last.ResourceVersion {
		t.Errorf("the node has version %s; its last heartbeat made %s", now.ResourceVersion, last.ResourceVersion)
	}
}

func TestAProcessThatIsKilledInBetweenWritesNothingTwice(t *testing.T) {
	const nodes = 40
	mgr := run(t, shared.Get(t).Config) // looks on
	want := map[string]bool{}
	for range nodes {
		want["PATCH /api/v1/nodes/"+newNode(t, mgr, corev1.ConditionTrue).Name] = true
	}
	var writes []string
	for range 3 {
		p := managertest.Run(t, shared.Get(t).Config, managertest.Making(New, with(func(o *Options) { o.Workers = 1 })))
		controlplanetest.Eventually(t, "some work done, or all", func() bool {
			n := len(p.Writes()) // nobody has counted the last one of each that was killed
			return n >= 5 || len(writes)+n >= nodes-2
		})
		p.Kill()
		writes = append(writes, p.Writes()...)
	}
	p := managertest.Run(t, shared.Get(t).Config, managertest.Making(New, Defaults()))
	for write := range want {
		controlplanetest.Await(t, mgr, object.Key{Name: path.Base(write)}, "taints and labels", func(n *corev1.Node) bool { return tainted()(n) && n.Labels[labelOSBeta] != "" })
	}
	p.Stop()
	for _, write := range append(writes, p.Writes()...) {
		if !want[write] {
			t.Errorf("%s is no write that was needed, or one that was done before", write)
		}
		delete(want, write)
	}
}

func TestATaintSetBySomebodyElseMeanwhileIsNotLost(t *testing.T) {
	mgr, err := manager.New(shared.Get(t).Config)
	if err != nil {
		t.Fatal(err)
	}
	nodes := client.For[*corev1.Node](mgr.Client())
	stale := newNode(t, mgr, corev1.ConditionTrue)
	theirs, err := client.MergePatch(map[string]any{"spec": map[string]any{"taints": []corev1.Taint{taint("example.com/theirs", corev1.TaintEffectNoSchedule)}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nodes.Patch(t.Context(), object.KeyOf(stale), theirs); err != nil {
		t.Fatal(err)
	}
	taints, differ := taintsOf(stale, holdNoExecute, time.Now())
	patch, err := change(stale, taints, differ, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nodes.Patch(t.Context(), object.KeyOf(stale), patch); !apierrors.IsConflict(err) {
		t.Errorf("patching an older state: %v, want a conflict", err)
	}
}

func TestASilentNodeItsTaintsItsPodsAndItsReturn(t *testing.T) {
	goesAndReturns(t, start(t, hasty))
}

// The server's Lease is the one that the cache has: nobody renews it.
func TestANodeThatNoLongerRenewsItsLeaseIsTurnedUnknownOnARealServer(t *testing.T) {
	mgr := start(t, hasty)
	alive, silent := newNode(t, mgr, corev1.ConditionTrue), newNode(t, mgr, corev1.ConditionTrue)
	beats(t, mgr, alive.Name)
	newLease(t, mgr, silent.Name)
	controlplanetest.Await(t, mgr, object.KeyOf(silent), "both taints of an unreachable node",
		tainted("node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"))
	if now := controlplanetest.Await(t, mgr, object.KeyOf(alive), "the other node", func(*corev1.Node) bool { return true }); readyStatus(now) != corev1.ConditionTrue {
		t.Errorf("the node that is alive is %s", readyStatus(now))
	}
}

func TestThereIsNoNeedOfOtherRightsThanThoseDeclared(t *testing.T) {
	cluster := shared.Get(t)
	run(t, cluster.Restricted(t, Rights()), func(mgr *manager.Manager) (manager.Runnable, error) { return New(mgr, hasty) })
	goesAndReturns(t, run(t, cluster.Config))
}

// goesAndReturns has a node fall silent and come back, as mgr sees it.
func goesAndReturns(t *testing.T, mgr *manager.Manager) {
	t.Helper()
	alive, silent := newNode(t, mgr, corev1.ConditionTrue), newNode(t, mgr, corev1.ConditionTrue)
	beats(t, mgr, alive.Name)
	ns := shared.Get(t).Namespace(t)
	pod := newPod(t, mgr, ns, "bound", silent.Name)
	safe := newPod(t, mgr, ns, "safe", alive.Name)

	node := controlplanetest.Await(t, mgr, object.KeyOf(silent), "both taints of an unreachable node",
		tainted("node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"))
	for _, kind := range kubeletConditions {
		want := reasonNever
		if kind == corev1.NodeReady {
			want = reasonStopped // the only one that it ever posted
		}
		if c := nodestate.Condition(node, kind); c == nil || c.Status != corev1.ConditionUnknown || c.Reason != want {
			t.Errorf("condition %s is %v, want Unknown, %s", kind, c, want)
		}
	}
	controlplanetest.Await(t, mgr, object.KeyOf(pod), "the Pod is marked not ready", podReady(corev1.ConditionFalse))

	// A Pod that gets there later is marked too.
	late := newPod(t, mgr, ns, "late", "")
	bind(t, mgr, late, silent.Name)
	controlplanetest.Await(t, mgr, object.KeyOf(late), "the late Pod is marked not ready", podReady(corev1.ConditionFalse))

	beats(t, mgr, silent.Name)
	post(t, mgr, silent.Name, corev1.NodeReady, corev1.ConditionTrue)
	controlplanetest.Await(t, mgr, object.KeyOf(silent), "no taints after the return", tainted())
	if now := controlplanetest.Await(t, mgr, object.KeyOf(safe), "the other node's Pod", func(*corev1.Pod) bool { return true }); !podReady(corev1.ConditionTrue)(now) {
		t.Errorf("the Pod of the node that is alive has conditions %v", now.Status.Conditions)
	}
	if now := controlplanetest.Await(t, mgr, object.KeyOf(alive), "the other node", func(*corev1.Node) bool { return true }); readyStatus(now) != corev1.ConditionTrue {
		t.Errorf("the node that is alive is %s", readyStatus(now))
	}

	for about, reason := range map[string]string{silent.Name: "NodeNotReady", pod.Name: "NodeNotReady", alive.Name: "RegisteredNode"} {
		awaitEvent(t, mgr, about, reason)
	}
	gone, err := client.For[*corev1.Node](mgr.Client()).Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "gone-"}})
	if err != nil {
		t.Fatal(err)
	}
	awaitEvent(t, mgr, gone.Name, "RegisteredNode")
	if err := client.For[*corev1.Node](mgr.Client()).Delete(t.Context(), object.KeyOf(gone)); err != nil {
		t.Fatal(err)
	}
	awaitEvent(t, mgr, gone.Name, "RemovingNode")
}

func TestWithEveryNodeSilentNoExecuteTaintsAreLiftedOnARealServer(t *testing.T) {
	mgr := start(t, hasty)
	node := newNode(t, mgr, corev1.ConditionUnknown)
	alive := newNode(t, mgr, corev1.ConditionTrue)
	controlplanetest.Await(t, mgr, object.KeyOf(node), "the taint while another node is ready",
		tainted("node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"))
	// The other one falls silent too.
	for _, n := range []*corev1.Node{node, alive} {
		controlplanetest.Await(t, mgr, object.KeyOf(n), "no NoExecute taint with every node down", tainted("node.kubernetes.io/unreachable:NoSchedule"))
	}
}

// bind binds a Pod to a node as a scheduler does.
func bind(t *testing.T, mgr *manager.Manager, pod *corev1.Pod, node string) {
	t.Helper()
	_, err := client.Sub[*corev1.Binding](client.For[*corev1.Pod](mgr.Client()), "binding").
		Create(t.Context(), object.KeyOf(pod), &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}})
	if err != nil {
		t.Fatal(err)
	}
}

// awaitEvent waits for an Event about an object of a name.
func awaitEvent(t *testing.T, mgr *manager.Manager, about, reason string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found := make(chan struct{}, 1)
	handler, err := cache.Informer[*eventsv1.Event](mgr).AddHandler(func(e cache.Event[*eventsv1.Event]) {
		event, err := e.Item().Object()
		if err == nil && event.Regarding.Name == about && event.Reason == reason {
			select {
			case found <- struct{}{}:
			default:
			}
		}
	}, cache.HandlerOptions{Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	defer handler.Remove()
	select {
	case <-found:
	case <-ctx.Done():
		t.Fatalf("no event %s about %s", reason, about)
	}
}
