// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server with nodes and DaemonSets, inside of a bubble of synctest. kubelets is the
// scheduler and all kubelets: nothing happens to Pods before it is called.
type cluster struct {
	*managertest.Bubble
	t                            *testing.T
	sets, pods, nodes, revisions *fakeapi.Resource
	// broken reports which Pods fail, and slow which ones do not get ready.
	broken, slow func(*corev1.Pod) bool
	reconciler   *reconciler // of the last start
}

func newCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	api := managertest.NewBubble(t)
	never := func(*corev1.Pod) bool { return false }
	c := &cluster{
		Bubble: api, t: t, broken: never, slow: never,
		sets:      api.Serve(kind, fakeapi.WithStatus()),
		pods:      api.Serve(managertest.Pods, fakeapi.WithStatus()),
		nodes:     api.Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}, fakeapi.WithStatus()),
		revisions: api.Serve(object.Resource{Group: "apps", Version: "v1", Plural: "controllerrevisions", Kind: "ControllerRevision", Namespaced: true}),
	}
	for i := range nodes {
		c.put(node(i))
	}
	return c
}

// start runs the controller. stop ends it.
func (c *cluster) start(options ...func(*Options)) *managertest.Process {
	c.t.Helper()
	o := Defaults()
	for _, set := range options {
		set(&o)
	}
	p := managertest.Run(c.t, c.Config(), func(mgr *manager.Manager) (manager.Runnable, error) {
		r, made, err := build(mgr, o)
		c.reconciler = r
		return made, err
	})
	synctest.Wait()
	return p
}

// put stores objects as they are, and lets the controller react.
func (c *cluster) put(objects ...object.Object) {
	c.t.Helper()
	for _, o := range objects {
		resource := map[string]*fakeapi.Resource{
			"*v1.DaemonSet": c.sets, "*v1.Pod": c.pods, "*v1.Node": c.nodes, "*v1.ControllerRevision": c.revisions,
		}[fmt.Sprintf("%T", o)]
		if err := resource.Put(o); err != nil {
			c.t.Fatal(err)
		}
	}
	synctest.Wait()
}

// create creates the DaemonSet agent as a user would.
func (c *cluster) create(change ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	c.t.Helper()
	set := agent(change...)
	set.UID, set.Generation = "", 0
	made, err := client.For[*appsv1.DaemonSet](c.Client).Create(c.t.Context(), set)
	if err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
	return made
}

// edit changes the DaemonSet agent as a user would, and lets the controller react.
func (c *cluster) edit(change func(*appsv1.DaemonSet)) {
	c.t.Helper()
	set := c.set()
	change(set)
	if _, err := client.For[*appsv1.DaemonSet](c.Client).Update(c.t.Context(), set); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func (c *cluster) set() *appsv1.DaemonSet {
	c.t.Helper()
	set, err := fakeapi.Read[*appsv1.DaemonSet](c.sets, agentKey)
	if err != nil {
		c.t.Fatal(err)
	}
	return set
}

func (c *cluster) allPods() []*corev1.Pod {
	c.t.Helper()
	all, err := fakeapi.Objects[*corev1.Pod](c.pods)
	if err != nil {
		c.t.Fatal(err)
	}
	return all
}

// podOn returns the Pod of a node, which has one.
func (c *cluster) podOn(node string) *corev1.Pod {
	c.t.Helper()
	for _, o := range c.allPods() {
		if nodeOf(&o.Spec) == node {
			return o
		}
	}
	c.t.Fatalf("there is no Pod on %s", node)
	return nil
}

func (c *cluster) allRevisions() []*appsv1.ControllerRevision {
	c.t.Helper()
	all, err := fakeapi.Objects[*appsv1.ControllerRevision](c.revisions)
	if err != nil {
		c.t.Fatal(err)
	}
	return all
}

// kubelets binds the Pods that have a node, runs them, and removes those that are being deleted.
func (c *cluster) kubelets() {
	c.t.Helper()
	for _, o := range c.allPods() {
		if o.DeletionTimestamp != nil {
			c.pods.Remove(object.KeyOf(o))
			continue
		}
		on := nodeOf(&o.Spec)
		if c.nodes.Get(object.Key{Name: on}) == nil || podstate.Ended(o) {
			continue
		}
		o.Spec.NodeName = on
		c.put(c.running(o))
	}
	synctest.Wait()
}

func (c *cluster) running(o *corev1.Pod) *corev1.Pod {
	switch {
	case c.broken(o):
		o.Status.Phase = corev1.PodFailed
		o.Status.Conditions = nil
	case !c.slow(o):
		getReady(o)
	}
	return o
}

// getReady makes a Pod ready, unless it is.
func getReady(o *corev1.Pod) {
	if !podstate.Ready(o) {
		o.Status.Phase = corev1.PodRunning
		o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	}
}

// turns lets kubelets and controller take turns.
func (c *cluster) turns(n int) {
	c.t.Helper()
	for range n {
		c.kubelets()
		pass(10 * time.Millisecond)
	}
}

// want compares what the nodes run: "node-0=a node-1=b,c" are the images of the Pods, and a Pod
// that is being deleted has a minus sign.
func (c *cluster) want(when, want string) {
	c.t.Helper()
	images := map[string][]string{}
	for _, o := range c.allPods() {
		image := o.Spec.Containers[0].Image
		if o.DeletionTimestamp != nil {
			image = "-" + image
		}
		images[nodeOf(&o.Spec)] = append(images[nodeOf(&o.Spec)], image)
	}
	var all []string
	for at, is := range images {
		slices.Sort(is)
		all = append(all, at+"="+strings.Join(is, ","))
	}
	slices.Sort(all)
	if got := strings.Join(all, " "); got != want {
		c.t.Fatalf("%s, the nodes run %s; want %s", when, got, want)
	}
}

// wantStatus compares desired, current, updated, ready, available, unavailable and misscheduled.
func (c *cluster) wantStatus(when string, numbers ...int32) {
	c.t.Helper()
	s := c.set().Status
	got := []int32{
		s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.UpdatedNumberScheduled, s.NumberReady,
		s.NumberAvailable, s.NumberUnavailable, s.NumberMisscheduled,
	}
	if !slices.Equal(got, numbers) {
		c.t.Fatalf("%s, desired, current, updated, ready, available, unavailable and misscheduled are %v, want %v", when, got, numbers)
	}
}

// notes returns what the Events of a reason say, sorted.
func (c *cluster) notes(reason string) []string {
	c.t.Helper()
	managertest.Settle()
	all := c.Notes(reason)
	slices.Sort(all)
	return all
}

// pass lets time pass, and the controller do what is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var agentKey = object.Key{Namespace: "ops", Name: "agent"}

// agent returns a DaemonSet as the API server would show it.
func agent(change ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	one := intstr.FromInt32(1)
	none := intstr.FromInt32(0)
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: agentKey.Namespace, Name: agentKey.Name, UID: "agent-uid", Generation: 1},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "a"}}, TerminationGracePeriodSeconds: new(int64(30))},
			},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &one, MaxSurge: &none},
			},
			RevisionHistoryLimit: new(int32(10)),
		},
	}
	for _, f := range change {
		f(set)
	}
	return set
}

// image gives a DaemonSet another template.
func image(name string) func(*appsv1.DaemonSet) {
	return func(set *appsv1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = name }
}

// limits gives a DaemonSet the limits of its rollouts.
func limits(surge, unavailable intstr.IntOrString) func(*appsv1.DaemonSet) {
	return func(set *appsv1.DaemonSet) {
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxSurge: &surge, MaxUnavailable: &unavailable}
	}
}

func node(i int, taints ...corev1.Taint) *corev1.Node {
	name := fmt.Sprintf("node-%d", i)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"kubernetes.io/hostname": name}},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func taint(effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: "dedicated", Effect: effect}
}
