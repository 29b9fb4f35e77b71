// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupprotection

import (
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller/protection"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server in memory, inside of a bubble of synctest, with the controller.
type cluster struct {
	*managertest.Bubble
	t            *testing.T
	groups, pods *fakeapi.Resource
	process      *managertest.Process
}

func start(t *testing.T) *cluster {
	t.Helper()
	c := serve(t)
	c.process = c.Start(managertest.Making(New, Defaults()))
	return c
}

func serve(t *testing.T) *cluster {
	t.Helper()
	b := managertest.NewBubble(t)
	return &cluster{
		Bubble: b, t: t,
		groups: b.Serve(object.Resource{Group: "scheduling.k8s.io", Version: "v1beta1", Plural: "podgroups", Kind: "PodGroup", Namespaced: true}, fakeapi.WithStatus()),
		pods:   b.Serve(managertest.Pods, fakeapi.WithStatus()),
	}
}

func (c *cluster) addGroup(name string, finalizers ...string) object.Key {
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Finalizers: finalizers}}
	c.Add(c.groups, group)
	return object.KeyOf(group)
}

// addPod adds a Pod of a group; "" is none.
func (c *cluster) addPod(namespace, name, group string) object.Key {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if group != "" {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	}
	c.Add(c.pods, pod)
	return object.KeyOf(pod)
}

func (c *cluster) setPhase(pod object.Key, phase corev1.PodPhase) {
	c.t.Helper()
	if err := fakeapi.Change(c.pods, pod, func(pod *corev1.Pod) { pod.Status.Phase = phase }); err != nil {
		c.t.Fatal(err)
	}
	managertest.Settle()
}

func (c *cluster) want(when string, names ...string) {
	c.t.Helper()
	if got := c.groups.Keys(); !slices.Equal(got, names) {
		c.t.Errorf("%s there are the groups %q, want %q", when, got, names)
	}
}

func TestAGroupStaysUntilItsPodsHaveEndedOrAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		gang := c.addGroup("gang", Finalizer)
		fails, succeeds, goes := c.addPod("ns", "fails", "gang"), c.addPod("ns", "succeeds", "gang"), c.addPod("ns", "goes", "gang")
		c.addPod("ns", "single", "")
		c.addPod("ns", "stranger", "another")
		c.addPod("elsewhere", "namesake", "gang")
		managertest.Settle()
		c.Delete(c.groups, gang)
		c.setPhase(fails, corev1.PodFailed)
		c.want("after the first Pod", "ns/gang")
		c.setPhase(goes, corev1.PodRunning)
		c.setPhase(succeeds, corev1.PodSucceeded)
		c.want("after the second Pod", "ns/gang")
		c.Delete(c.pods, goes)
		c.want("after the third Pod")
	})
}

func TestAGroupWithoutPodsGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		gang, other := c.addGroup("gang", Finalizer), c.addGroup("other", "example.com/x", Finalizer)
		managertest.Settle()
		c.Delete(c.groups, gang)
		c.Delete(c.groups, other)
		c.want("after the deletions", "ns/other")
		if f := c.groups.Get(other).GetFinalizers(); !slices.Equal(f, []string{"example.com/x"}) {
			t.Errorf("the group that another finalizer keeps has %q", f)
		}
	})
}

// Admission adds the finalizer, and nothing else does.
func TestAGroupWithoutTheFinalizerStaysWithoutIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		gang := c.addGroup("gang")
		c.addPod("ns", "web", "gang")
		managertest.Settle()
		if f := c.groups.Get(gang).GetFinalizers(); len(f) > 0 {
			t.Errorf("it has %q", f)
		}
		c.Delete(c.groups, gang)
		c.want("after the deletion")
	})
}

func TestAGroupThatIsNotRemovedNamesItsPodsInOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		gang := c.addGroup("gang", Finalizer)
		var pods []object.Key
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			pods = append(pods, c.addPod("ns", name, "gang"))
		}
		managertest.Settle()
		c.Delete(c.groups, gang)
		for _, pod := range pods[:2] {
			c.Delete(c.pods, pod)
		}
		want := []string{"Not deleted yet: it keeps the finalizer scheduling.k8s.io/podgroup-protection, because it is in use by Pod a, Pod b, Pod c and 2 more"}
		if notes := c.Notes(protection.InUse); !slices.Equal(notes, want) {
			t.Errorf("the Events say %q, want %q", notes, want)
		}
		reason := "InUse: it keeps the finalizer scheduling.k8s.io/podgroup-protection, because it is in use by Pod c, Pod d, Pod e (until the end of its last user)"
		if reasons := c.process.Reasons("ns/gang"); !slices.Equal(reasons, []string{reason}) {
			t.Errorf("the reasons are %q, want %q", reasons, reason)
		}
	})
}

// Pods that start and run start no run of their group.
func TestOnlyPodsThatEndStartARunOfTheirGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		c.addGroup("gang", Finalizer)
		pod := c.addPod("ns", "web", "gang")
		managertest.Settle()
		c.setPhase(pod, corev1.PodPending)
		c.setPhase(pod, corev1.PodRunning)
		if n := c.process.Runs().Stats().Runs; n != 0 {
			t.Errorf("%d runs", n)
		}
		c.setPhase(pod, corev1.PodSucceeded)
		if n := c.process.Runs().Stats().Runs; n != 1 {
			t.Errorf("%d runs when the Pod has ended, want 1", n)
		}
	})
}

// A deletion and a creation that the informer merges are one event.
func TestAPodThatIsReplacedReleasesItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		gang := c.addGroup("gang", Finalizer)
		pod := c.addPod("ns", "web", "gang")
		managertest.Settle()
		c.Delete(c.groups, gang)
		c.pods.HoldWatches(true)
		c.Delete(c.pods, pod)
		c.addPod("ns", "web", "another")
		c.pods.HoldWatches(false)
		managertest.Settle()
		c.want("when another Pod has the name")
	})
}

func TestAProcessThatIsKilledAfterItsWritesMakesEachOfThemOnce(t *testing.T) {
	managertest.KilledAfterEachWrite(t, func(t *testing.T) managertest.Scene {
		c := serve(t)
		var groups []object.Key
		for _, name := range []string{"a", "b", "used"} {
			groups = append(groups, c.addGroup(name, Finalizer))
		}
		c.addPod("ns", "web", "used")
		for _, group := range groups {
			c.Delete(c.groups, group)
		}
		return managertest.Scene{
			Config: c.Config(), Make: managertest.Making(New, Defaults()), Await: managertest.Settle,
			Check: func(t *testing.T) {
				if got := c.groups.Keys(); !slices.Equal(got, []string{"ns/used"}) {
					t.Errorf("there are the groups %q, want the one that is used", got)
				}
			},
		}
	})
}
