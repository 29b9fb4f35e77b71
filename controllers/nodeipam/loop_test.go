// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server with Nodes, inside of a bubble of synctest.
type cluster struct {
	*fakeapi.Resource
	t       *testing.T
	api     *fakeapi.Server
	events  *fakeapi.Resource
	nodes   client.Typed[*corev1.Node]
	options Options
	metrics prometheus.Collector // of the process that was started last
	refuse  func(*fakeapi.Request) *metav1.Status
}

func newCluster(t *testing.T, network string) *cluster {
	t.Helper()
	api := fakeapi.New()
	c := &cluster{
		t: t, api: api, options: Defaults(),
		Resource: api.Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}, fakeapi.WithStatus()),
	}
	c.options.ClusterCIDR = network
	c.events = api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
	plain, err := client.New(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	c.nodes = client.For[*corev1.Node](plain)
	c.Before(c.validate)
	return c
}

// validate refuses what an API server does: the ranges of a Node do not change.
// Source: k8s.io/kubernetes/pkg/apis/core/validation, ValidateNodeUpdate.
func (c *cluster) validate(q *fakeapi.Request) *metav1.Status {
	if c.refuse != nil {
		if status := c.refuse(q); status != nil {
			return status
		}
	}
	if q.Verb != "patch" {
		return nil
	}
	now, err := fakeapi.Read[*corev1.Node](c.Resource, q.Key)
	if err != nil || now == nil || len(now.Spec.PodCIDRs) == 0 || slices.Equal(c.body(q).Spec.PodCIDRs, now.Spec.PodCIDRs) {
		return nil
	}
	return &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid",
	}
}

// body reads what a patch changes, and puts it back.
func (c *cluster) body(q *fakeapi.Request) (change corev1.Node) {
	raw, err := io.ReadAll(q.HTTP.Body)
	if err == nil {
		err = json.Unmarshal(raw, &change)
	}
	if err != nil {
		c.t.Error(err)
	}
	q.HTTP.Body = io.NopCloser(bytes.NewReader(raw))
	return change
}

// start runs the controller, and returns when it has nothing to do at once.
func (c *cluster) start() *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.api.Config(), func(m *manager.Manager) (manager.Runnable, error) {
		made, err := New(m, c.options)
		if err == nil {
			c.metrics = made.(prometheus.Collector)
		}
		return made, err
	})
	settle()
	return p
}

func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func (c *cluster) add(name string, ranges ...string) {
	c.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDRs: ranges}}
	if len(ranges) > 0 {
		node.Spec.PodCIDR = ranges[0]
	}
	if err := c.Add(node); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) remove(name string) {
	c.t.Helper()
	if err := c.nodes.Delete(c.t.Context(), object.Key{Name: name}); err != nil {
		c.t.Fatal(err)
	}
	settle()
}

// ranges returns the ranges of a Node as the server has them.
func (c *cluster) ranges(name string) string {
	c.t.Helper()
	node, err := c.nodes.Get(c.t.Context(), object.Key{Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	if len(node.Spec.PodCIDRs) > 0 && node.Spec.PodCIDR != node.Spec.PodCIDRs[0] {
		c.t.Errorf("%s has the range %s and the ranges %v", name, node.Spec.PodCIDR, node.Spec.PodCIDRs)
	}
	return strings.Join(node.Spec.PodCIDRs, ",")
}

// want compares the ranges of Nodes, as "name=range,range …".
func (c *cluster) want(when, want string) {
	c.t.Helper()
	for each := range strings.FieldsSeq(want) {
		name, ranges, _ := strings.Cut(each, "=")
		if got := c.ranges(name); got != ranges {
			c.t.Errorf("%s %s has %q, want %q", when, name, got, ranges)
		}
	}
}

// notes returns what the Events of a reason say.
func (c *cluster) notes(reason string) (all []string) {
	c.t.Helper()
	events, err := fakeapi.Objects[*eventsv1.Event](c.events)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range events {
		if e.Reason == reason {
			all = append(all, e.Regarding.Name+": "+e.Note)
		}
	}
	slices.Sort(all)
	return all
}

func patches(p *managertest.Process) int { return len(p.Writes()) }

func TestNodesGetRangesInTurnAndHeartbeatsCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "10.244.0.0/16,fd00::/56")
		c.options.Workers = 1
		c.add("a")
		p := c.start()
		c.want("at first", "a=10.244.0.0/24,fd00::/64")
		c.add("b")
		settle()
		c.want("later", "b=10.244.1.0/24,fd00:0:0:1::/64")
		for range 20 {
			node, err := c.nodes.Get(t.Context(), object.Key{Name: "a"})
			if err != nil {
				t.Fatal(err)
			}
			node.Status.Phase = corev1.NodePhase(fmt.Sprint(time.Now()))
			if _, err := c.nodes.UpdateStatus(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			settle()
		}
		if n := patches(p); n != 2 {
			t.Errorf("%d writes for two Nodes", n)
		}
		if found, _ := p.Runs().Find(runs.Query{}); len(found) > 4 {
			t.Errorf("%d runs for two Nodes that got a range each and have twenty heartbeats", len(found))
		}
	})
}

func TestTheRangesOfAllNodesAreReadFromTheServerFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "10.244.0.0/22")
		c.add("new")
		// The informer has begun when a process that led until now gives a range.
		c.refuse = func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "list" {
				c.refuse = nil
				c.HoldWatches(true)
				c.add("old", "10.244.0.0/24")
			}
			return nil
		}
		c.start()
		c.want("behind an old cache", "old=10.244.0.0/24 new=10.244.1.0/24")
	})
}

func TestNoRangeIsGivenWhileTheServerDoesNotSayWhichAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "10.244.0.0/22")
		c.add("a")
		lists := 0
		c.refuse = func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "list" {
				if lists++; lists < 4 {
					return fakeapi.Unavailable(0)
				}
			}
			return nil
		}
		p := c.start()
		if lists == 0 || patches(p) > 0 && lists < 4 {
			t.Errorf("%d writes after %d lists", patches(p), lists)
		}
		time.Sleep(time.Minute)
		c.want("when the server answers", "a=10.244.0.0/24")
	})
}

func TestAWriteWhoseAnswerIsLostIsNotMadeWithAnotherRange(t *testing.T) {
	for _, lost := range []int{1, 2, 3, 7} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, "10.244.0.0/22")
			c.start()
			c.LoseNext(lost, "patch")
			c.add("a")
			time.Sleep(5 * time.Minute)
			c.add("b")
			settle()
			c.want("at last", "a=10.244.0.0/24 b=10.244.1.0/24")
		})
	}
}

func TestWhileTheServerDoesNotSayWhetherANodeHasARangeThatIsStated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "10.244.0.0/22")
		p := c.start()
		var fails atomic.Bool
		c.refuse = func(q *fakeapi.Request) *metav1.Status {
			if fails.Load() && (q.Verb == "patch" || q.Verb == "get") {
				return fakeapi.Unavailable(0)
			}
			return nil
		}
		fails.Store(true)
		c.add("a")
		settle()
		const want = codeNotAnswered + ": whether the Node has 10.244.0.0/24 is not known: not now (until the API server answers)"
		if reasons := p.Reasons("a"); !slices.Equal(reasons, []string{want}) {
			t.Errorf("the reasons are %q, want %q", reasons, want)
		}
		fails.Store(false)
		time.Sleep(time.Minute)
		c.want("when the server answers", "a=10.244.0.0/24")
		if reasons := p.Reasons("a"); len(reasons) > 0 {
			t.Errorf("when the server answers the reasons are %q", reasons)
		}
	})
}

func TestARefusedWriteIsReportedAndTriedAgainWithTheSameRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "10.244.0.0/22")
		tried, refused := 0, 3+1
		c.refuse = func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "patch" || tried >= refused {
				return nil
			}
			tried++
			return fakeapi.Unavailable(0)
		}
		c.start()
		c.add("a")
		time.Sleep(time.Minute)
		c.add("b")
		settle()
		c.want("at last", "a=10.244.0.0/24 b=10.244.1.0/24")
		if got := c.notes(reasonAssignmentFailed); len(got) != 1 || !strings.HasPrefix(got[0], "a: Node a status is now: CIDRAssignmentFailed: ") {
			t.Errorf("events %q", got)
		}
		if got := c.notes(reasonNotAvailable); len(got) > 0 {
			t.Errorf("events %q", got)
		}
	})
}

// The ranges count as used when they are chosen. The run that writes them in the end finds them chosen, so it crosses no level.
func TestANetworkThatFillsUpIsSaidAlthoughTheWriteIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "10.244.0.0/21")
		p := c.start()
		add := func(names ...string) {
			for _, name := range names {
				c.add(name)
				settle()
			}
		}
		add("a", "b", "c", "d", "e", "f")
		if got := c.notes(reasonFillingUp); len(got) > 0 {
			t.Fatalf("with 6 of 8 ranges there are the events %q", got)
		}
		refused := 0
		c.refuse = func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "patch" || refused > 0 {
				return nil
			}
			refused++
			return fakeapi.Forbidden("nodes")
		}
		add("g")
		time.Sleep(10 * time.Minute)
		c.want("at last", "g=10.244.6.0/24")
		want := "g: 7 of 8 ranges of 10.244.0.0/21 are used; Nodes beyond the last one get none"
		if got := c.notes(reasonFillingUp); refused != 1 || len(got) != 1 || got[0] != want {
			t.Errorf("after %d refusals there are the events %q, want %q", refused, got, want)
		}
		said := 0
		for _, line := range p.Warnings() {
			if strings.Contains(line, "a network of --cluster-cidr is filling up") {
				said++
			}
		}
		if said != 1 {
			t.Errorf("the log says it %d times, want once", said)
		}
	})
}

func TestANodeThatGotARangeElsewhereMeanwhileKeepsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "10.244.0.0/22")
		c.start()
		c.HoldWatches(true)
		c.add("a")
		node, err := c.nodes.Get(t.Context(), object.Key{Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		c.refuse = func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" {
				c.refuse = nil
				node.Spec.PodCIDR, node.Spec.PodCIDRs = "10.244.3.0/24", []string{"10.244.3.0/24"}
				if err := c.Put(node); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
		c.HoldWatches(false)
		settle()
		for _, name := range []string{"b", "c", "d", "e"} {
			c.add(name)
			settle()
		}
		// The range that was chosen for it is free again.
		c.want("at last", "a=10.244.3.0/24 b=10.244.1.0/24 c=10.244.2.0/24 d=10.244.0.0/24 e=")
	})
}

func TestANodeThatWaitsGetsTheRangeOfOneThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "10.244.0.0/23")
		c.options.ServiceClusterIPRange = "10.244.0.0/30"
		c.add("a", "10.244.1.0/24")
		p := c.start()
		c.add("b")
		settle()
		want := "b: Node b status is now: CIDRNotAvailable: 2 of 2 ranges of 10.244.0.0/23 are used, 1 of them by the addresses of Services"
		if got := c.notes(reasonNotAvailable); len(got) != 1 || got[0] != want {
			t.Errorf("events %q, want %q", got, want)
		}
		reason := codeNoRange + ": the Node gets no range: 2 of 2 ranges of 10.244.0.0/23 are used, 1 of them by the addresses of Services " +
			"(until a Node is deleted, or the manager is started with a larger --cluster-cidr or longer masks)"
		if reasons := p.Reasons("b"); !slices.Equal(reasons, []string{reason}) {
			t.Errorf("the reasons are %q, want %q", reasons, reason)
		}
		time.Sleep(time.Hour)
		if got := c.notes(reasonNotAvailable); len(got) != 1 {
			t.Errorf("after an hour there are the events %q", got)
		}
		c.remove("a")
		c.want("after a went", "b=10.244.1.0/24")
		if reasons := p.Reasons("b"); len(reasons) > 0 {
			t.Errorf("after a went the reasons are %q", reasons)
		}
	})
}

func TestARangeWhoseNodeWasNeverSeenIsFoundWhenNoneIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "10.244.0.0/24")
		c.add("b")
		c.refuse = func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "list" {
				c.refuse = nil
				c.HoldWatches(true)
				c.add("unseen", "10.244.0.0/24") // in the list of the controller, not in that of the informer
			}
			return nil
		}
		c.start()
		c.want("while another has the range", "b=")
		if err := c.nodes.Delete(t.Context(), object.Key{Name: "unseen"}); err != nil {
			t.Fatal(err)
		}
		c.api.Compact(c.api.ResourceVersion())
		c.api.CutConnections()
		settle() // the informer lists again
		c.HoldWatches(false)
		time.Sleep(lookAgain + time.Minute)
		c.want("at last", "b=10.244.0.0/24")
	})
}

func TestNodesWithRangesFromElsewhereAreNamedAndStopNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "10.244.0.0/22,fd00::/62")
		c.add("broken", "nonsense")
		c.add("outside", "192.168.0.0/24")
		c.add("wide", "10.244.0.0/23")
		c.add("twin-1", "10.244.2.0/24", "fd00::/64")
		c.add("twin-2", "10.244.2.0/24", "fd00:0:0:1::/64")
		c.add("new")
		p := c.start()
		c.want("beside them", "new=10.244.3.0/24,fd00:0:0:2::/64")
		if got := c.notes(reasonShared); len(got) != 2 || got[0] != "twin-1: The addresses of 10.244.2.0/24, fd00::/64 are also those of Nodes: twin-2" {
			t.Errorf("events %q", got)
		}
		log := strings.Join(p.Warnings(), "\n")
		for _, want := range []string{"a range of a node cannot be read", "several nodes have the same addresses", "a node has a range that --cluster-cidr does not have"} {
			if !strings.Contains(log, want) {
				t.Errorf("the log does not say %q:\n%s", want, log)
			}
		}
		codes := map[string]bool{}
		for _, run := range p.Runs().Present(runs.Query{}) {
			for _, reason := range run.Reasons {
				codes[reason.Code] = true
			}
		}
		for _, code := range []string{codeMalformed, codeElsewhere, codeShared, codeOneFamily} {
			if !codes[code] {
				t.Errorf("no Node has the reason %s", code)
			}
		}
		// The range of the twins stays used until both are gone.
		c.remove("twin-1")
		c.add("next")
		settle()
		c.want("while a twin is there", "next=")
		c.remove("twin-2")
		c.want("after both", "next=10.244.2.0/24,fd00:0:0:3::/64")
	})
}

func TestANodeThatIsBeingDeletedGetsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "10.244.0.0/24")
		if err := c.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ends", Finalizers: []string{"example.com/held"}, DeletionTimestamp: new(metav1.Now())}}); err != nil {
			t.Fatal(err)
		}
		p := c.start()
		c.add("a")
		settle()
		c.want("at last", "ends= a=10.244.0.0/24")
		const want = codeDeleted + ": the Node is being deleted, so it gets no range (until the Node is gone)"
		if reasons := p.Reasons("ends"); !slices.Equal(reasons, []string{want}) {
			t.Errorf("the reasons are %q, want %q", reasons, want)
		}
	})
}

func TestAnotherNodeOfTheNameGetsAnotherRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "10.244.0.0/22")
		c.add("a")
		c.start()
		c.HoldWatches(true)
		c.remove("a")
		c.add("a")
		c.HoldWatches(false)
		settle()
		c.want("the new one", "a=10.244.1.0/24")
		c.add("b")
		c.add("c")
		c.add("d")
		settle()
		for _, name := range []string{"b", "c", "d"} {
			if c.ranges(name) == "" {
				t.Errorf("%s has no range: that of the first a is lost", name)
			}
		}
	})
}

func TestTheMetricsAreThoseOfUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "10.244.0.0/22")
		c.options.ServiceClusterIPRange = "10.244.0.0/24"
		c.add("a")
		c.start()
		c.add("b")
		settle()
		c.remove("a")
		registry := prometheus.NewRegistry()
		registry.MustRegister(c.metrics)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			m := f.GetMetric()[0]
			if l := m.GetLabel(); len(l) != 1 || l[0].GetName() != "clusterCIDR" || l[0].GetValue() != "10.244.0.0/22" {
				t.Errorf("%s has the labels %v", f.GetName(), l)
			}
			got[f.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
			if h := m.GetHistogram(); h != nil && h.GetSampleCount() != 2 {
				t.Errorf("%s has %d samples, want 2", f.GetName(), h.GetSampleCount())
			}
		}
		want := map[string]float64{
			"node_ipam_controller_cidrset_cidrs_allocations_total":      3, // that of the Services, a, b
			"node_ipam_controller_cidrset_cidrs_releases_total":         1,
			"node_ipam_controller_cirdset_max_cidrs":                    4,
			"node_ipam_controller_cidrset_usage_cidrs":                  0.5,
			"node_ipam_controller_cidrset_allocation_tries_per_request": 1, // a passed that of the Services over
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want\n%v", got, want)
		}
	})
}

// Processes are killed again and again while Nodes come and go, answers are lost, and watches
// lag. No two Nodes that exist at a time have the same range, at any version.
func TestNoTwoNodesHaveTheSameRangeWhateverHappens(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			c := newCluster(t, "10.244.0.0/20,fd00::/60")
			c.options.Workers = 4
			var mu sync.Mutex
			has := map[string]string{} // the Node of each range
			c.refuse = func(q *fakeapi.Request) *metav1.Status {
				if q.Verb != "patch" {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				for _, r := range c.body(q).Spec.PodCIDRs {
					other := has[r]
					if node := c.Get(object.Key{Name: other}); other != q.Key.Name && node != nil {
						t.Errorf("%s gets %s, which %s has", q.Key.Name, r, other)
					}
					has[r] = q.Key.Name
				}
				return nil
			}
			lags := rand.New(rand.NewPCG(seed, 2)) // of the server, which locks before each call
			c.LagWatches(func() time.Duration { return time.Duration(lags.IntN(300)) * time.Millisecond })
			next := 0
			for range 12 {
				p := c.start()
				for range 10 {
					switch names := c.Keys(); {
					case len(names) < 5 || len(names) < 15 && random.IntN(3) > 0:
						next++
						c.add(fmt.Sprint("n", next))
					default:
						if err := c.nodes.Delete(t.Context(), object.Key{Name: names[random.IntN(len(names))]}); err != nil {
							t.Fatal(err)
						}
					}
					if random.IntN(4) == 0 {
						c.LoseNext(1+random.IntN(3), "patch")
					}
					time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
				}
				p.Kill()
			}
			c.start()
			time.Sleep(10 * time.Minute)
			for _, name := range c.Keys() {
				if c.ranges(name) == "" {
					t.Errorf("%s has no range at last", name)
				}
			}
		})
	}
}

func TestWhatCannotBeMadeIsRefused(t *testing.T) {
	for _, o := range []Options{{Workers: -1, ClusterCIDR: "10.0.0.0/16"}, {Workers: 1}} {
		synctest.Test(t, func(t *testing.T) {
			mgr, err := manager.New(fakeapi.New().Config())
			if err != nil {
				t.Fatal(err)
			}
			var made controller.Runnable
			if made, err = New(mgr, o); err == nil || !strings.HasPrefix(err.Error(), "making "+Name+": ") {
				t.Errorf("%+v: %v, %v", o, made, err)
			}
		})
	}
}
