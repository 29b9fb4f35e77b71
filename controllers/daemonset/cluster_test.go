// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
)

const clusterNodes = 4

var shared = controlplanetest.Shared{Options: controlplanetest.Options{Nodes: clusterNodes}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// watcher follows the Pods of a namespace version by version.
type watcher struct {
	t *testing.T

	mu   sync.Mutex
	pods map[object.Key]*corev1.Pod
	// surging allows an old and a new Pod on a node.
	surging bool
	// least is how many nodes must have a ready Pod. Below 0 there is no such bound.
	least  int
	broken []string
}

// watch returns a watcher that has seen the Pods that are there.
func watch(t *testing.T, namespace string, surging bool) *watcher {
	t.Helper()
	w := &watcher{t: t, pods: map[object.Key]*corev1.Pod{}, surging: surging, least: -1}
	informer := cache.Informer[*corev1.Pod](managertest.Run(t, shared.Get(t).Config), cache.InNamespace(namespace))
	if _, err := informer.AddHandler(w.see, cache.HandlerOptions{Name: t.Name(), EveryStep: true}); err != nil {
		t.Fatal(err)
	}
	if err := informer.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *watcher) see(e cache.Event[*corev1.Pod]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, e.Key())
	if e.Kind != cache.Deleted {
		o, err := e.New.Object()
		if err != nil {
			w.t.Error(err)
			return
		}
		w.pods[e.Key()] = o
	}
	version := string(e.Item().Meta().Version)
	on, ready := map[string][]*corev1.Pod{}, map[string]bool{}
	for _, o := range w.pods {
		if node := nodeOf(&o.Spec); podstate.Active(o) {
			on[node] = append(on[node], o)
			ready[node] = ready[node] || podstate.Ready(o)
		}
	}
	for node, pods := range on {
		switch {
		case len(pods) > 2, len(pods) == 2 && (!w.surging || pods[0].Labels[hashLabel] == pods[1].Labels[hashLabel]):
			w.broken = append(w.broken, fmt.Sprintf("resourceVersion %s: %s has %d Pods", version, node, len(pods)))
		}
	}
	count := 0
	for _, is := range ready {
		if is {
			count++
		}
	}
	if count < w.least {
		w.broken = append(w.broken, fmt.Sprintf("resourceVersion %s: %d nodes have a ready Pod, want %d", version, count, w.least))
	}
}

// expect sets the least number of nodes with a ready Pod, and fails the test if something was
// broken before.
func (w *watcher) expect(least int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.broken {
		w.t.Error(line)
	}
	w.broken, w.least = nil, least
}

// world is a process with the controller, which is killed and started again, and DaemonSets.
type world struct {
	*testing.T
	cluster *controlplanetest.Cluster
	config  *rest.Config
	process *managertest.Process
	rand    *rand.Rand
}

// story is one DaemonSet on nodes that have its label, in a namespace of its own.
type story struct {
	*world
	key    object.Key
	label  string // of the nodes that the DaemonSet wants
	w      *watcher
	images int
	in     map[string]bool // the nodes that have the label
}

// TestNodesAndRolloutsKeepToTheirLimitsAtEveryResourceVersion changes templates and nodes, lets
// Pods fail and kills the controller, in an order of chance. The controller has no more rights than
// it declares.
func TestNodesAndRolloutsKeepToTheirLimitsAtEveryResourceVersion(t *testing.T) {
	cluster := shared.Get(t)
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	w := &world{T: t, cluster: cluster, config: cluster.Restricted(t, Rights()), rand: rand.New(rand.NewPCG(seed, 0))}
	w.start()
	stories := []*story{
		w.story("deleting", limits(intstr.FromInt32(0), intstr.FromString("30%"))), // 2 of 4 nodes, 1 of 3 or fewer
		w.story("surging", limits(intstr.FromInt32(1), intstr.FromInt32(0))),
	}
	all := func(step func(*story)) {
		for _, s := range stories {
			step(s)
		}
		for _, s := range stories {
			s.settle()
		}
	}
	all((*story).settle)
	for range 3 {
		all((*story).disturb)
		for _, s := range stories {
			s.w.expect(s.least())
		}
		all((*story).update)
		for _, s := range stories {
			s.w.expect(-1)
		}
	}
}

func (w *world) start() {
	w.process = managertest.Run(w.T, w.config, managertest.Making(New, Defaults()))
}

// kill ends the process without a word, and starts another one.
func (w *world) kill() {
	w.process.Kill()
	w.process.Writes() // what the server was asked for before is done, or never will be
	w.start()
}

func (w *world) story(name string, limits func(*appsv1.DaemonSet)) *story {
	w.Helper()
	s := &story{
		world: w, key: object.Key{Namespace: w.cluster.Namespace(w.T), Name: agentKey.Name}, label: "example.com/" + name, in: map[string]bool{},
	}
	for i := range clusterNodes {
		s.setLabel(fmt.Sprintf("node-%d", i), true)
	}
	set := agent(limits, func(set *appsv1.DaemonSet) {
		set.ObjectMeta = metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}
		set.Spec.MinReadySeconds = 1
		set.Spec.Template.Annotations = map[string]string{"sim.setpoint.io/ready-after": "50ms"}
		spec := &set.Spec.Template.Spec
		spec.NodeSelector = map[string]string{s.label: "yes"}
		spec.TerminationGracePeriodSeconds = new(int64(0))
		for _, other := range []string{"deleting", "surging"} {
			if other != name {
				spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: "example.com/" + other, Operator: corev1.TolerationOpExists})
			}
		}
	})
	if _, err := client.For[*appsv1.DaemonSet](w.cluster.Client).Create(w.Context(), set); err != nil {
		w.Fatal(err)
	}
	s.w = watch(w.T, s.key.Namespace, name == "surging")
	return s
}

// setLabel gives a node the label of the DaemonSet, or takes it away.
func (s *story) setLabel(node string, has bool) {
	s.Helper()
	value := any("yes")
	if !has {
		value = nil
	}
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{s.label: value}}})
	if err != nil {
		s.Fatal(err)
	}
	if _, err := client.For[*corev1.Node](s.cluster.Client).Patch(s.Context(), object.Key{Name: node}, patch); err != nil {
		s.Fatal(err)
	}
	s.in[node] = has
}

// least is how many nodes keep a ready Pod during a rollout.
func (s *story) least() int {
	nodes := 0
	for _, in := range s.in {
		if in {
			nodes++
		}
	}
	if s.w.surging {
		return nodes
	}
	return nodes - (nodes*30+99)/100
}

// settle waits until all nodes have an available Pod of the last template, and the status says so.
func (s *story) settle() {
	s.Helper()
	controlplanetest.Await(s.T, s.process, s.key, "the DaemonSet is at rest", func(set *appsv1.DaemonSet) bool {
		is := set.Status
		want := int32(0)
		for _, in := range s.in {
			if in {
				want++
			}
		}
		return is.ObservedGeneration == set.Generation && is.DesiredNumberScheduled == want && is.UpdatedNumberScheduled == want &&
			is.NumberAvailable == want && is.NumberMisscheduled == 0
	})
	// The status may be from before the last disturbance. The Pods of the server are not.
	controlplanetest.Eventually(s.T, "each node has a ready Pod", func() bool {
		all, _, err := client.For[*corev1.Pod](s.cluster.Client).List(s.Context(), client.Selection{Namespace: s.key.Namespace})
		if err != nil {
			s.Fatal(err)
		}
		serves := map[string]bool{}
		for _, o := range all {
			serves[nodeOf(&o.Spec)] = serves[nodeOf(&o.Spec)] || podstate.Active(o) && podstate.Ready(o)
		}
		for node, in := range s.in {
			if in && !serves[node] {
				return false
			}
		}
		return true
	})
}

// disturb changes nodes and lets Pods fail.
func (s *story) disturb() {
	s.Helper()
	for range 3 {
		node := fmt.Sprintf("node-%d", s.rand.IntN(clusterNodes))
		switch what := s.rand.IntN(5); what {
		case 0, 1:
			s.setLabel(node, what == 0)
		case 2:
			s.taint(node, corev1.TaintEffectNoExecute)
			s.taint(node, "")
		case 3:
			s.fail(node)
		case 4:
			s.kill()
		}
	}
	s.setLabel("node-0", true) // a rollout needs a node
}

// taint gives a node a taint that this DaemonSet does not tolerate and that of the other history
// does, or takes it away.
func (s *story) taint(node string, effect corev1.TaintEffect) {
	s.Helper()
	args := []string{"taint", "node", node, s.label + "=x:" + string(effect)}
	if effect == "" {
		args[3] = s.label + "-"
	}
	if _, err := s.cluster.Kubectl(args...); err != nil {
		s.Fatal(err)
	}
}

// fail lets the Pods of a node fail, as a kubelet does that evicts them.
func (s *story) fail(node string) {
	s.Helper()
	pods := client.For[*corev1.Pod](s.cluster.Client)
	all, _, err := pods.List(s.Context(), client.Selection{Namespace: s.key.Namespace})
	if err != nil {
		s.Fatal(err)
	}
	patch, err := client.MergePatch(map[string]any{"status": map[string]any{"phase": corev1.PodFailed, "reason": "Evicted"}})
	if err != nil {
		s.Fatal(err)
	}
	for _, o := range all {
		if o.Spec.NodeName == node {
			if _, err := pods.Sub("status").Patch(s.Context(), object.KeyOf(o), patch); err != nil && !client.Absent(err) {
				s.Fatal(err)
			}
		}
	}
}

// update changes the template once or twice, and kills the process at times.
func (s *story) update() {
	s.Helper()
	for range 1 + s.rand.IntN(2) {
		s.images++
		if _, err := s.cluster.Kubectl("--namespace", s.key.Namespace, "set", "image", "daemonset/"+s.key.Name, fmt.Sprintf("main=web:%d", s.images%3)); err != nil {
			s.Fatal(err)
		}
		if s.rand.IntN(2) == 0 {
			s.kill()
		}
	}
}
