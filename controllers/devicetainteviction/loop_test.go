// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devicetainteviction

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server in memory, inside of a bubble of synctest. No scheduler, kubelet or driver
// runs.
type cluster struct {
	t                           *testing.T
	api                         *fakeapi.Server
	pods, claims, slices, rules *fakeapi.Resource
	client                      *client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	api := fakeapi.New()
	of := func(plural, kind string, namespaced bool, options ...fakeapi.Option) *fakeapi.Resource {
		return api.Serve(object.Resource{Group: "resource.k8s.io", Version: "v1", Plural: plural, Kind: kind, Namespaced: namespaced}, options...)
	}
	c := &cluster{
		t: t, api: api,
		pods:   api.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}),
		claims: of("resourceclaims", "ResourceClaim", true, fakeapi.WithStatus()),
		slices: of("resourceslices", "ResourceSlice", false),
	}
	api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
	var err error
	if c.client, err = client.New(api.Config()); err != nil {
		t.Fatal(err)
	}
	return c
}

// serveRules has the server serve DeviceTaintRules.
func (c *cluster) serveRules() {
	c.rules = c.api.Serve(object.Resource{Group: "resource.k8s.io", Version: "v1", Plural: "devicetaintrules", Kind: "DeviceTaintRule"}, fakeapi.WithStatus())
}

func (c *cluster) start() *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.api.Config(), managertest.Making(New, Defaults()))
	synctest.Wait()
	return p
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// addSlice adds a slice of pool "p" of driver "d" with the devices d0 and d1.
func (c *cluster) addSlice(name string, generation int64, taints ...resourcev1.DeviceTaint) {
	c.t.Helper()
	check(c.t, c.slices.Add(&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "d", Pool: resourcev1.ResourcePool{Name: "p", Generation: generation, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "d0", Taints: taints}, {Name: "d1"}},
	}}))
	synctest.Wait()
}

// taint has device d0 of a slice have these taints.
func (c *cluster) taint(name string, taints ...resourcev1.DeviceTaint) {
	c.t.Helper()
	check(c.t, fakeapi.Change(c.slices, object.Key{Name: name}, func(s *resourcev1.ResourceSlice) { s.Spec.Devices[0].Taints = taints }))
	synctest.Wait()
}

func noExecute(key string) resourcev1.DeviceTaint {
	return resourcev1.DeviceTaint{Key: key, Effect: resourcev1.DeviceTaintEffectNoExecute, TimeAdded: new(metav1.Now())}
}

// addPod adds a Pod on a node with a claim of a device.
func (c *cluster) addPod(name, device string, tolerations ...resourcev1.DeviceToleration) {
	c.t.Helper()
	check(c.t, c.pods.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{
		NodeName: "n", ResourceClaims: []corev1.PodResourceClaim{{Name: "dev", ResourceClaimName: new("of-" + name)}},
	}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}))
	check(c.t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "of-" + name}, Status: resourcev1.ResourceClaimStatus{
		ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: c.pods.UID(in(name))}},
		Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "dev", Driver: "d", Pool: "p", Device: device, Tolerations: tolerations},
		}}},
	}}))
	synctest.Wait()
}

func in(name string) object.Key { return object.Key{Namespace: "ns", Name: name} }

func forSeconds(n int64) resourcev1.DeviceToleration {
	return resourcev1.DeviceToleration{Operator: resourcev1.DeviceTolerationOpExists, Effect: resourcev1.DeviceTaintEffectNoExecute, TolerationSeconds: &n}
}

func (c *cluster) want(when string, pods ...string) {
	c.t.Helper()
	for i := range pods {
		pods[i] = "ns/" + pods[i]
	}
	if got := c.pods.Keys(); !slices.Equal(got, pods) {
		c.t.Fatalf("%s there are the Pods %q, want %q", when, got, pods)
	}
}

func (c *cluster) notes() (all []string) {
	c.t.Helper()
	events, _, err := client.For[*eventsv1.Event](c.client).List(c.t.Context(), client.Selection{})
	check(c.t, err)
	for _, e := range events {
		all = append(all, e.Reason+": "+e.Note+" "+e.Regarding.Name)
	}
	slices.Sort(all)
	return all
}

// addRule adds a rule about a device of the pool.
func (c *cluster) addRule(name, device string, effect resourcev1.DeviceTaintEffect) {
	c.t.Helper()
	check(c.t, c.rules.Add(&resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: new("d"), Pool: new("p"), Device: &device},
		Taint:          resourcev1.DeviceTaint{Key: "broken", Effect: effect, TimeAdded: new(metav1.Now())},
	}}))
	synctest.Wait()
}

// condition returns reason, status and message of the condition of a rule.
func (c *cluster) condition(rule string) string {
	c.t.Helper()
	r, err := fakeapi.Read[*resourcev1.DeviceTaintRule](c.rules, object.Key{Name: rule})
	check(c.t, err)
	if len(r.Status.Conditions) != 1 || r.Status.Conditions[0].Type != "EvictionInProgress" || r.Status.Conditions[0].ObservedGeneration != r.Generation {
		return "none"
	}
	condition := r.Status.Conditions[0]
	return strings.TrimSpace(condition.Reason + "=" + string(condition.Status) + " " + condition.Message)
}

func (c *cluster) wantCondition(when, rule, want string) {
	c.t.Helper()
	if got := c.condition(rule); got != want {
		c.t.Errorf("%s the condition of rule %s is\n%s, want\n%s", when, rule, got, want)
	}
}

func TestAPodGoesWhenItsDeviceIsTaintedAndOthersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addSlice("s", 1)
		c.addPod("a", "d0")
		c.addPod("b", "d1")
		c.addPod("calm", "d0", resourcev1.DeviceToleration{Operator: resourcev1.DeviceTolerationOpExists})
		p := c.start() // the server does not serve DeviceTaintRules
		var said *corev1.PodCondition
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "delete" {
				pod, err := fakeapi.Read[*corev1.Pod](c.pods, q.Key)
				if err != nil {
					t.Error(err)
					return nil
				}
				said = podstate.Condition(pod, corev1.DisruptionTarget)
			}
			return nil
		})
		c.taint("s", resourcev1.DeviceTaint{Key: "slow", Effect: resourcev1.DeviceTaintEffectNoSchedule})
		c.want("with a taint that evicts nobody", "a", "b", "calm")
		c.taint("s", noExecute("broken"))
		c.want("with the taint", "b", "calm")
		if said == nil || said.Status != corev1.ConditionTrue || said.Reason != conditionReason || said.Message != conditionMessage {
			t.Errorf("before it was deleted, the Pod had the condition %v", said)
		}
		pass(time.Second)
		for _, warning := range p.Warnings() {
			if strings.Contains(warning, "panic") {
				t.Errorf("the log says: %s", warning)
			}
		}
		if notes := c.notes(); !slices.Equal(notes, []string{"DeviceTaintManagerEviction: Marking for deletion a"}) {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestAPodStaysForTheTimeThatItToleratesATaintAlsoThroughARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addSlice("s", 1)
		c.addPod("a", "d0", forSeconds(300))
		p := c.start()
		c.taint("s", noExecute("broken"))
		if got := p.Reasons("ns/a"); len(got) != 1 || !strings.HasPrefix(got[0], "DeviceTaintTolerated: the Pod tolerates the taint broken of device d/p/d0 until 2000-01-01T00:05:00Z") {
			t.Errorf("the reasons are %q", got)
		}
		pass(200 * time.Second)
		c.want("after 200 s", "a")
		p.Kill()
		c.start()
		pass(99 * time.Second)
		c.want("after 299 s", "a")
		pass(2 * time.Second)
		c.want("after 301 s")
	})
}

func TestAPodWhoseTaintEndsStaysAndAnEventSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addSlice("s", 1, noExecute("broken"))
		c.addPod("a", "d0", forSeconds(300))
		c.start()
		pass(time.Minute)
		c.taint("s")
		pass(time.Hour)
		c.want("without the taint", "a")
		if notes := c.notes(); !slices.Equal(notes, []string{"DeviceTaintManagerEviction: Cancelling deletion a"}) {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestSlicesOfTheNewestGenerationCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addSlice("old", 1, noExecute("broken"))
		c.addSlice("new", 2)
		c.addPod("a", "d0")
		c.addPod("b", "d0", forSeconds(60))
		c.start()
		c.want("with a taint of an earlier generation", "a", "b")
		c.slices.Remove(object.Key{Name: "new"})
		synctest.Wait()
		c.want("when that generation is the newest", "b")
		c.addSlice("new", 3)
		pass(time.Hour)
		c.want("when it is not any more", "b")
	})
}

func TestAPodIsLeftAlone(t *testing.T) {
	pod := func(change func(*corev1.Pod)) func(*cluster) error {
		return func(c *cluster) error { return fakeapi.Change(c.pods, in("a"), change) }
	}
	claim := func(change func(*resourcev1.ResourceClaim)) func(*cluster) error {
		return func(c *cluster) error { return fakeapi.Change(c.claims, in("of-a"), change) }
	}
	for name, change := range map[string]func(*cluster) error{
		"without a node":               pod(func(p *corev1.Pod) { p.Spec.NodeName = "" }),
		"that has ended":               pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		"whose claim is not reserved":  claim(func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor[0].UID = "other" }),
		"whose claim is not allocated": claim(func(c *resourcev1.ResourceClaim) { c.Status.Allocation = nil }),
		"with another device":          claim(func(c *resourcev1.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Device = "d1" }),
		"whose claim is another Pod's": pod(func(p *corev1.Pod) {
			p.Spec.ResourceClaims[0] = corev1.PodResourceClaim{Name: "dev", ResourceClaimTemplateName: new("t")}
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "dev", ResourceClaimName: new("of-a")}}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.addSlice("s", 1, noExecute("broken"))
				c.addPod("a", "d0")
				check(t, change(c))
				c.start()
				pass(time.Hour)
				c.want("after an hour", "a")
			})
		})
	}
}

func TestARuleEvictsAndSaysHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.serveRules()
		c.addSlice("s", 1)
		c.addPod("a", "d0")
		c.addPod("b", "d0", forSeconds(25))
		c.addPod("other", "d1")
		c.start()
		c.addRule("r", "d0", resourcev1.DeviceTaintEffectNoExecute)
		c.want("at once", "b", "other")
		writes := func() (n int) {
			for _, q := range c.rules.Requests() {
				if q.Verb == "patch" {
					n++
				}
			}
			return n
		}
		pass(11 * time.Second)
		c.wantCondition("after 11 s", "r", "PodsPendingEviction=True 1 pod needs to be evicted in 1 namespace. 1 pod evicted since starting the controller.")
		pass(20 * time.Second)
		c.want("after 31 s", "other")
		pass(10 * time.Second)
		c.wantCondition("after 41 s", "r", "Completed=False 2 pods evicted since starting the controller.")
		if n := writes(); n > 4 {
			t.Errorf("in 41 s the status was written %d times", n)
		}
		n := writes()
		pass(time.Hour)
		if more := writes() - n; more > 0 {
			t.Errorf("after its end the status was written %d times", more)
		}
	})
}

func TestARuleWithoutEffectSaysWhatItWouldDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.serveRules()
		c.addSlice("old", 0)
		c.addSlice("s", 1)
		c.addPod("a", "d0")
		c.addPod("b", "d0", resourcev1.DeviceToleration{Operator: resourcev1.DeviceTolerationOpExists})
		c.start()
		c.addRule("r", "d0", resourcev1.DeviceTaintEffectNone)
		c.addRule("s", "d0", resourcev1.DeviceTaintEffectNoSchedule)
		c.addRule("t", "d1", resourcev1.DeviceTaintEffectNoExecute)
		pass(time.Hour)
		c.want("with such a rule", "a", "b")
		c.wantCondition("with the effect None", "r", "NoEffect=False 1 published device selected. 2 allocated devices selected. 1 pod would be evicted in 1 namespace "+
			"if the effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an update.")
		c.wantCondition("with the effect NoSchedule", "s", "OtherEffect=False Eviction only happens for the NoExecute effect.")
		c.wantCondition("with no Pods", "t", "NotStarted=False")
		// The rule gets the effect.
		check(t, fakeapi.Change(c.rules, object.Key{Name: "r"}, func(r *resourcev1.DeviceTaintRule) {
			r.Spec.Taint.Effect = resourcev1.DeviceTaintEffectNoExecute
			r.Generation++
		}))
		pass(time.Minute)
		c.want("with the effect NoExecute", "b")
		c.wantCondition("with the effect NoExecute", "r", "Completed=False 1 pod evicted since starting the controller.")
	})
}

func TestARuleThatIsDeletedLetsItsPodsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.serveRules()
		c.addSlice("s", 1)
		c.addPod("a", "d0", forSeconds(60))
		c.addRule("r", "d0", resourcev1.DeviceTaintEffectNoExecute)
		c.start()
		pass(30 * time.Second)
		c.rules.Remove(object.Key{Name: "r"})
		pass(time.Hour)
		c.want("without the rule", "a")
	})
}

func TestAnEvictionThatFailsIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addSlice("s", 1, noExecute("broken"))
		c.pods.RefuseNext(2, "delete", fakeapi.Forbidden("pods"))
		c.pods.LoseNext(1, "patch")
		c.addPod("a", "d0")
		c.start()
		pass(5 * time.Minute)
		c.want("after two refusals and a lost answer")
		if notes := c.notes(); !slices.Equal(notes, []string{"DeviceTaintManagerEviction: Marking for deletion a"}) {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestPodsThatWereEvictedAreCounted(t *testing.T) {
	for name, noRules := range map[string]bool{"with rules": false, "without rules": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.addSlice("s", 1, noExecute("broken"))
				var refuses atomic.Bool
				refuses.Store(true)
				c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
					if q.Verb == "delete" && refuses.Load() {
						return fakeapi.Forbidden("pods")
					}
					return nil
				})
				c.addPod("a", "d0")
				c.addPod("other-device", "d1")
				c.addPod("later", "d0", forSeconds(600))
				o := Defaults()
				o.NoRules = noRules
				var metrics prometheus.Collector
				managertest.Run(t, c.api.Config(), managertest.MakingMetrics(New, o, &metrics))
				want := func(when string, n float64) {
					t.Helper()
					series := managertest.Series(t, metrics)
					for _, name := range []string{"device_taint_eviction_controller_pod_deletions_total", "device_taint_eviction_controller_pod_deletion_duration_seconds"} {
						if got, has := series[name]; got != n || !has {
							t.Errorf("%s %s is %v, want %v", when, name, got, n)
						}
					}
				}
				synctest.Wait()
				want("while deletes are refused", 0)
				refuses.Store(false)
				pass(time.Hour)
				want("at the end", 2)
			})
		})
	}
}

func TestASliceWithoutTaintsStartsNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addPod("a", "d0")
		c.addSlice("s", 1)
		p := c.start()
		before := p.Runs().Stats()
		for range 10 {
			check(t, fakeapi.Change(c.slices, object.Key{Name: "s"}, func(s *resourcev1.ResourceSlice) {
				s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: "more"})
			}))
			pass(time.Second)
		}
		if after := p.Runs().Stats(); after != before {
			t.Errorf("the record was %+v, and is %+v", before, after)
		}
	})
}
