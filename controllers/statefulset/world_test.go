// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server with StatefulSets and what they need, inside of a bubble of synctest.
type cluster struct {
	*managertest.Bubble
	t                             *testing.T
	sets, pods, claims, revisions *fakeapi.Resource
	process                       *managertest.Process

	mu         sync.Mutex
	violations []string // of the rules of safety, by writes of the controller
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	api := managertest.NewBubble(t)
	return &cluster{
		Bubble: api, t: t, sets: api.Serve(kind, fakeapi.WithStatus()),
		pods: api.Serve(managertest.Pods, fakeapi.WithStatus()), claims: api.Serve(managertest.Claims, fakeapi.WithStatus()),
		revisions: api.Serve(object.Resource{Group: "apps", Version: "v1", Plural: "controllerrevisions", Kind: "ControllerRevision", Namespaced: true}),
	}
}

// start runs the controller, after it has stopped the one that runs.
func (c *cluster) start() {
	c.t.Helper()
	if c.process != nil {
		c.process.Stop()
	}
	c.process = managertest.Run(c.t, c.Config(), managertest.Making(New, Defaults()))
	synctest.Wait()
}

// create creates a StatefulSet as a user does.
func (c *cluster) create(set *appsv1.StatefulSet) {
	c.t.Helper()
	set.UID, set.Generation = "", 0
	if _, err := client.For[*appsv1.StatefulSet](c.Client).Create(c.t.Context(), set); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

// change changes the StatefulSet as a user does.
func (c *cluster) change(f func(*appsv1.StatefulSet)) {
	c.t.Helper()
	var err error
	for range 3 { // a fault may be for the controller
		synctest.Wait()
		set := c.set()
		f(set)
		if _, err = client.For[*appsv1.StatefulSet](c.Client).Update(c.t.Context(), set); err == nil {
			break
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func image(name string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = name }
}

func replicas(n int32) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.Replicas = &n }
}

func (c *cluster) set() *appsv1.StatefulSet {
	c.t.Helper()
	set, err := fakeapi.Read[*appsv1.StatefulSet](c.sets, object.Key{Namespace: "shop", Name: "web"})
	if err != nil {
		c.t.Fatal(err)
	}
	return set
}

func (c *cluster) all() []*corev1.Pod {
	c.t.Helper()
	pods, err := fakeapi.Objects[*corev1.Pod](c.pods)
	if err != nil {
		c.t.Fatal(err)
	}
	return pods
}

// members returns the Pods that are named after the StatefulSet.
func (c *cluster) members() []*corev1.Pod {
	return slices.DeleteFunc(c.all(), func(p *corev1.Pod) bool {
		set, _, ok := splitName(p.Name)
		return !ok || set != "web"
	})
}

// kubelet takes one step with each Pod, and reports whether it has changed one. A Pod that is being
// deleted goes. An image whose name begins with "bad" cannot be pulled. Other Pods become ready.
func (c *cluster) kubelet() (changed bool) {
	c.t.Helper()
	synctest.Wait()
	for _, pod := range c.all() {
		key := object.KeyOf(pod)
		bad := strings.HasPrefix(pod.Spec.Containers[0].Image, "bad")
		switch {
		case pod.DeletionTimestamp != nil:
			c.pods.Remove(key)
		case podstate.Ended(pod) || podstate.Ready(pod) || bad && pod.Status.StartTime != nil:
			continue
		default:
			c.alter(key.Name, func(p *corev1.Pod) {
				p.Spec.NodeName = "node"
				p.Status = corev1.PodStatus{}
				if bad {
					pulls(p)
				} else {
					readySince(time.Now())(p)
				}
			})
		}
		changed = true
	}
	synctest.Wait()
	return changed
}

// settle has the kubelet work until nothing changes.
func (c *cluster) settle() {
	c.t.Helper()
	for range 1000 {
		if !c.kubelet() {
			return
		}
	}
	c.t.Fatal("the cluster does not come to rest")
}

// alter changes a Pod as its kubelet does. The Pod may be gone.
func (c *cluster) alter(name string, f func(*corev1.Pod)) {
	c.t.Helper()
	key := object.Key{Namespace: "shop", Name: name}
	if c.pods.UID(key) == "" {
		return
	}
	if err := fakeapi.Change(c.pods, key, f); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

// want compares the Pods, each as its name, its image and what is special about it.
func (c *cluster) want(when, pods string) {
	c.t.Helper()
	var all []string
	for _, pod := range c.all() {
		text := pod.Name + " " + pod.Spec.Containers[0].Image
		switch {
		case pod.DeletionTimestamp != nil:
			text += " leaves"
		case !podstate.Ready(pod):
			text += " not ready"
		}
		all = append(all, text)
	}
	if got := strings.Join(all, ", "); got != pods {
		c.t.Fatalf("%s the Pods are %q, want %q; reasons %q", when, got, pods, c.process.Reasons("shop/web"))
	}
}

// notes returns what the Events of a reason say.
func (c *cluster) notes(reason string) []string {
	c.t.Helper()
	managertest.Settle()
	return c.Notes(reason)
}

// supervise checks each write of a Pod against the state of the server at that moment. The
// controller alone sends requests about Pods, and nothing else changes Pods while it works.
func (c *cluster) supervise() {
	c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
		// Deletes of one run arrive at once. Each sees those that were carried out before it.
		c.mu.Lock()
		defer c.mu.Unlock()
		var broken string
		switch q.Verb {
		case "create":
			broken = c.checkCreate()
		case "delete":
			broken = c.checkDelete(q.Key.Name)
		}
		if broken != "" {
			c.violations = append(c.violations, q.String()+": "+broken)
		}
		return nil
	})
}

// serving reports whether a Pod counts as available.
func serving(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && podstate.Ready(p) }

// checkCreate returns what is wrong with the creation of a Pod now.
func (c *cluster) checkCreate() string {
	set := c.set()
	if set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return ""
	}
	there := map[int]*corev1.Pod{}
	for _, p := range c.members() {
		there[ordinalOf(p)] = p
	}
	for ordinal := start(set); wants(set, ordinal); ordinal++ {
		switch p := there[ordinal]; {
		case p == nil:
			return "" // this is the one
		case !serving(p):
			return p.Name + " is not ready"
		}
	}
	return "no Pod is missing"
}

// checkDelete returns what is wrong with the deletion of a Pod now.
func (c *cluster) checkDelete(name string) string {
	set, unavailable := c.set(), size(c.set())
	var pod *corev1.Pod
	higher := ""
	for _, p := range c.members() {
		if p.Name == name {
			pod = p
		}
		if wants(set, ordinalOf(p)) && serving(p) {
			unavailable--
		}
	}
	if pod == nil {
		return "it does not exist"
	}
	for _, p := range c.members() {
		if ordinalOf(p) > ordinalOf(pod) && !wants(set, ordinalOf(p)) {
			higher = p.Name
		}
	}
	ordered := set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	most := set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.IntValue()
	switch {
	case !wants(set, ordinalOf(pod)):
		if ordered && higher != "" {
			return higher + " is above it"
		}
	case podstate.Ended(pod):
	case revisionOf(pod) == set.Status.UpdateRevision && set.Status.ObservedGeneration == set.Generation:
		return "it has the new revision"
	case serving(pod) && unavailable >= most:
		return fmt.Sprintf("%d Pods are not available, and %d may be", unavailable, most)
	case ordered && !serving(pod) && !neverReady(pod):
		return "it was ready before, and the order waits for it"
	}
	return ""
}

// safe fails the test if a write has broken a rule.
func (c *cluster) safe() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.violations {
		c.t.Error(v)
	}
}
