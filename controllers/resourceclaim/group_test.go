// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// groupCluster is a cluster that serves PodGroups.
type groupCluster struct {
	*cluster
	groups *fakeapi.Resource
}

func newGroupCluster(t *testing.T) *groupCluster {
	t.Helper()
	c := newCluster(t)
	return &groupCluster{c, c.api.Serve(object.Resource{Group: "scheduling.k8s.io", Version: "v1beta1", Plural: "podgroups", Kind: "PodGroup", Namespaced: true}, fakeapi.WithStatus())}
}

// manage runs the controller with the gates GenericWorkload and DRAWorkloadResourceClaims on or off.
func (c *groupCluster) manage(generic, shared bool) *managertest.Process {
	c.t.Helper()
	o := Defaults()
	o.PodGroups, o.SharedClaims = generic, shared
	p := managertest.Run(c.t, c.api.Config(), managertest.Making(New, o))
	synctest.Wait()
	return p
}

func (c *groupCluster) addGroup(name string, claims ...string) *schedulingv1beta1.PodGroup {
	c.t.Helper()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, entry := range pod("", "", claims...).Spec.ResourceClaims {
		group.Spec.ResourceClaims = append(group.Spec.ResourceClaims, schedulingv1beta1.PodGroupResourceClaim{
			Name: entry.Name, ResourceClaimName: entry.ResourceClaimName, ResourceClaimTemplateName: entry.ResourceClaimTemplateName,
		})
	}
	check(c.t, c.groups.Add(group))
	return c.group(name)
}

func (c *groupCluster) group(name string) *schedulingv1beta1.PodGroup {
	c.t.Helper()
	group, err := fakeapi.Read[*schedulingv1beta1.PodGroup](c.groups, object.Key{Namespace: "ns", Name: name})
	check(c.t, err)
	return group
}

// addMember adds a Pod of a group.
func (c *groupCluster) addMember(name, node, group string, claims ...string) {
	c.t.Helper()
	p := pod(name, node, claims...)
	p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	check(c.t, c.pods.Add(p))
}

// claimOf returns the name of the claim in the status of a Pod, or "".
func (c *groupCluster) claimOf(pod, entry string) string {
	c.t.Helper()
	for _, s := range c.pod(pod).Status.ResourceClaimStatuses {
		if s.Name == entry && s.ResourceClaimName != nil {
			return *s.ResourceClaimName
		}
	}
	return ""
}

func (c *groupCluster) everyClaim() []*resourcev1.ResourceClaim {
	c.t.Helper()
	all, err := fakeapi.Objects[*resourcev1.ResourceClaim](c.claims)
	check(c.t, err)
	return all
}

// allocate gives a claim devices and the finalizer, as the scheduler does.
func (c *groupCluster) allocate(name string) {
	c.t.Helper()
	check(c.t, fakeapi.Change(c.claims, object.Key{Namespace: "ns", Name: name}, func(claim *resourcev1.ResourceClaim) {
		claim.Finalizers = []string{resourcev1.Finalizer}
		claim.Status.Allocation = &resourcev1.AllocationResult{}
	}))
	synctest.Wait()
}

// The Pods of a group share one claim. Each has a claim of its own for its other entries.
func TestThePodsOfAPodGroupShareItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGroupCluster(t)
		c.manage(true, true)
		c.addTemplate("gpus")
		group := c.addGroup("gang", "gpu:gpus", "more:gpus")
		for _, name := range []string{"a", "b"} {
			c.addMember(name, "", "gang", "gpu:gpus", "own:gpus")
		}
		pass(time.Second)
		all := c.everyClaim()
		if len(all) != 4 {
			t.Fatalf("there are %d claims, want two of the group and one of each Pod", len(all))
		}
		shared := c.claimOf("a", "gpu")
		if shared == "" || c.claimOf("b", "gpu") != shared || c.claimOf("a", "own") == c.claimOf("b", "own") {
			t.Errorf("the statuses are %+v and %+v", c.pod("a").Status, c.pod("b").Status)
		}
		if n := len(c.group("gang").Status.ResourceClaimStatuses); n != 2 {
			t.Errorf("the status of the group has %d claims, want 2", n)
		}
		for _, claim := range all {
			if claim.Name != shared {
				continue
			}
			ref := metav1.GetControllerOf(claim)
			if ref.APIVersion != "scheduling.k8s.io/v1beta1" || ref.Kind != "PodGroup" || ref.UID != group.UID ||
				claim.Annotations[resourcev1.PodResourceClaimAnnotation] != "gpu" || !strings.HasPrefix(claim.Name, "gang-gpu-") {
				t.Errorf("the claim of the group is %+v", claim.ObjectMeta)
			}
		}
	})
}

// Pods that are bound without the scheduler have the claim reserved for their group, once. The
// reservation stays until the group is gone, whatever becomes of its Pods.
func TestASharedClaimIsReservedForThePodGroupUntilItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGroupCluster(t)
		c.manage(true, true)
		c.addTemplate("gpus")
		group := c.addGroup("gang", "gpu:gpus", "named=by-hand")
		check(t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "by-hand"}}))
		for _, name := range []string{"a", "b"} {
			c.addMember(name, "node", "gang", "gpu:gpus", "named=by-hand")
		}
		pass(time.Second)
		shared := c.claimOf("a", "gpu")
		c.allocate(shared)
		c.allocate("by-hand")
		pass(time.Second)
		want := []resourcev1.ResourceClaimConsumerReference{{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "gang", UID: group.UID}}
		reserved := func(when string, want []resourcev1.ResourceClaimConsumerReference) {
			t.Helper()
			for _, claim := range c.everyClaim() {
				if !slices.Equal(claim.Status.ReservedFor, want) || (claim.Status.Allocation != nil) != (len(want) > 0) {
					t.Errorf("%s the status of claim %s is %+v, want %+v", when, claim.Name, claim.Status, want)
				}
			}
		}
		reserved("at first", want)
		for _, name := range []string{"a", "b"} {
			c.pods.Remove(object.Key{Namespace: "ns", Name: name})
		}
		pass(time.Second)
		reserved("without Pods", want)
		c.groups.Remove(object.Key{Namespace: "ns", Name: "gang"})
		pass(time.Second)
		reserved("without the group", nil)
		for _, claim := range c.everyClaim() {
			if len(claim.Finalizers) > 0 {
				t.Errorf("claim %s has the finalizers %q", claim.Name, claim.Finalizers)
			}
		}
	})
}

func TestPodGroupsWithTheFeatureGatesOff(t *testing.T) {
	for name, test := range map[string]struct {
		generic, shared bool
		claims          int // of the Pod's own
		reason          string
	}{
		"both":    {reason: "PodGroupClaims: the Pod belongs to the PodGroup gang, and the feature gate GenericWorkload is off (until the gate is on)"},
		"sharing": {generic: true, claims: 1, reason: "PodGroupClaims: the Pods of the PodGroup gang share the claim of the entry gpu, and the feature gate DRAWorkloadResourceClaims is off (until the gate is on)"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newGroupCluster(t)
				p := c.manage(test.generic, test.shared)
				c.addTemplate("gpus")
				group := c.addGroup("gang", "gpu:gpus")
				// A reservation from when the gate was on stays.
				kept := []resourcev1.ResourceClaimConsumerReference{{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "gone", UID: "gone"}}
				check(t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "old"}, Status: resourcev1.ResourceClaimStatus{ReservedFor: kept}}))
				c.addMember("a", "", group.Name, "gpu:gpus", "own:gpus")
				pass(time.Second)
				if n := len(c.everyClaim()); n != test.claims+1 {
					t.Errorf("there are %d claims, want %d", n-1, test.claims)
				}
				for _, claim := range c.everyClaim() {
					if claim.Name == "old" && !slices.Equal(claim.Status.ReservedFor, kept) {
						t.Errorf("the reservations are %+v", claim.Status.ReservedFor)
					}
				}
				if why := p.Reasons("ns/a"); !slices.Contains(why, test.reason) {
					t.Errorf("the reasons are %q, want %q", why, test.reason)
				}
			})
		})
	}
}

// A group and a template that come later start the runs that wait for them. A claim that was
// deleted by mistake is made again.
func TestWhatAPodGroupLacksIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGroupCluster(t)
		p := c.manage(true, true)
		c.addMember("a", "", "gang", "gpu:gpus")
		pass(time.Second)
		if why := strings.Join(p.Reasons("ns/a"), "\n"); !strings.HasPrefix(why, "PodGroupMissing: the PodGroup gang of the Pod does not exist") {
			t.Errorf("the reasons are %q", why)
		}
		c.addGroup("gang", "gpu:gpus")
		pass(time.Second)
		if why := strings.Join(p.Reasons("ns/a"), "\n"); !strings.Contains(why, "the PodGroup gang has no claim yet for the entry gpu") {
			t.Errorf("the reasons are %q", why)
		}
		if why := strings.Join(p.Reasons("ns/gang"), "\n"); !strings.Contains(why, "the ResourceClaimTemplate gpus does not exist") {
			t.Errorf("the reasons of the group are %q", why)
		}
		c.addTemplate("gpus")
		pass(time.Second)
		first := c.claimOf("a", "gpu")
		if first == "" {
			t.Fatal("the Pod has no claim")
		}
		c.claims.Remove(object.Key{Namespace: "ns", Name: first})
		pass(time.Second)
		if next := c.claimOf("a", "gpu"); next == first || len(c.everyClaim()) != 1 || c.everyClaim()[0].Name != next {
			t.Errorf("the Pod names the claim %s, and there are %d claims", next, len(c.everyClaim()))
		}
	})
}

func TestAProcessThatIsKilledMakesASharedClaimOnce(t *testing.T) {
	managertest.KilledAfterEachWrite(t, func(t *testing.T) managertest.Scene {
		c := newGroupCluster(t)
		o := Defaults()
		o.PodGroups, o.SharedClaims = true, true
		c.addTemplate("gpus")
		c.addGroup("gang", "gpu:gpus")
		c.addMember("a", "", "gang", "gpu:gpus")
		return managertest.Scene{
			Config: c.api.Config(), Make: managertest.Making(New, o), Await: managertest.Settle,
			Check: func(t *testing.T) {
				if all := c.everyClaim(); len(all) != 1 || c.claimOf("a", "gpu") != all[0].Name {
					t.Errorf("there are %d claims, and the Pod names %q", len(all), c.claimOf("a", "gpu"))
				}
			},
		}
	})
}
