// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecidr

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server with ServiceCIDRs and IPAddresses, inside of a bubble of synctest.
type cluster struct {
	t                        *testing.T
	api                      *fakeapi.Server
	cidrs, addresses, events *fakeapi.Resource
	client                   *client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	api := fakeapi.New()
	c := &cluster{
		t: t, api: api,
		cidrs:     api.Serve(kind, fakeapi.WithStatus()),
		addresses: api.Serve(object.Resource{Group: kind.Group, Version: "v1", Plural: "ipaddresses", Kind: "IPAddress"}),
		events:    api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}),
	}
	var err error
	if c.client, err = client.New(api.Config()); err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs the controller, and returns when it has nothing to do at once.
func (c *cluster) start() *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.api.Config(), managertest.Making(New, Defaults()))
	pass(time.Second)
	return p
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (c *cluster) create(name string, ranges ...string) {
	c.t.Helper()
	if err := c.cidrs.Add(cidr(name, "", ranges...)); err != nil {
		c.t.Fatal(err)
	}
	pass(time.Second)
}

func (c *cluster) delete(name string) {
	c.t.Helper()
	if err := client.For[*networkingv1.ServiceCIDR](c.client).Delete(c.t.Context(), object.Key{Name: name}); err != nil {
		c.t.Fatal(err)
	}
	pass(time.Second)
}

func (c *cluster) allocate(ips ...string) {
	c.t.Helper()
	for _, ip := range ips {
		if err := c.addresses.Add(address(ip)); err != nil {
			c.t.Fatal(err)
		}
	}
	pass(time.Second)
}

func (c *cluster) free(ips ...string) {
	c.t.Helper()
	for _, ip := range ips {
		if err := client.For[*networkingv1.IPAddress](c.client).Delete(c.t.Context(), object.Key{Name: ip}); err != nil {
			c.t.Fatal(err)
		}
	}
	pass(time.Second)
}

// ready returns the condition Ready of a ServiceCIDR as "status reason: message".
func (c *cluster) ready(name string) string {
	c.t.Helper()
	is, err := fakeapi.Read[*networkingv1.ServiceCIDR](c.cidrs, object.Key{Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	condition := meta.FindStatusCondition(is.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	if condition == nil {
		return "none"
	}
	return string(condition.Status) + " " + condition.Reason + ": " + condition.Message
}

func (c *cluster) want(when, name, condition string) {
	c.t.Helper()
	if got := c.ready(name); got != condition {
		c.t.Errorf("%s Ready of %s is\n%s, want\n%s", when, name, got, condition)
	}
}

// gone reports whether a ServiceCIDR is gone.
func (c *cluster) gone(name string) bool { return !slices.Contains(c.cidrs.Keys(), name) }

const isReady = "True : Kubernetes Service CIDR is ready"

func stays(addresses string) string {
	return "False Terminating: There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR: " + addresses
}

func TestAServiceCIDRStaysWhileItsAddressesAreInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.start()
		c.create("a", "10.0.0.0/24", "fd00::/112")
		c.want("a new one", "a", isReady)
		if f := c.cidrs.Get(object.Key{Name: "a"}).GetFinalizers(); !slices.Equal(f, []string{Finalizer}) {
			t.Errorf("the finalizers are %q", f)
		}
		c.allocate("10.0.0.10", "10.0.0.9", "fd00::9")
		if n := len(p.Writes()); n != 2 {
			t.Errorf("%d writes for one ServiceCIDR and its addresses, want 2", n)
		}
		c.delete("a")
		c.want("with three addresses", "a", stays("10.0.0.9 of Service shop/web, 10.0.0.10 of Service shop/web, fd00::9 of Service shop/web"))
		codes := map[string]bool{}
		for _, run := range p.Runs().Present(runs.Query{}) {
			for _, reason := range run.Reasons {
				codes[reason.Code] = true
			}
		}
		if !codes[codeInUse] {
			t.Errorf("the reasons are %v", codes)
		}
		pass(time.Hour)
		c.allocate("10.0.0.11")
		c.want("with four addresses", "a", stays("10.0.0.9 of Service shop/web, 10.0.0.10 of Service shop/web, 10.0.0.11 of Service shop/web and others"))
		c.free("10.0.0.9", "10.0.0.10", "10.0.0.11")
		c.want("with one address", "a", stays("fd00::9 of Service shop/web"))
		c.free("fd00::9")
		if !c.gone("a") {
			t.Error("it is there without addresses, an hour after its deletion")
		}
	})
}

func TestAServiceCIDRStaysForTenSecondsAtLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.start()
		c.create("a", "10.0.0.0/24")
		c.delete("a")
		pass(8 * time.Second)
		const want = codeGrace + ": API servers have 10s to hear of the deletion (until that time)"
		if reasons := p.Reasons("a"); !slices.Equal(reasons, []string{want}) {
			t.Errorf("the reasons are %q, want %q", reasons, want)
		}
		if c.gone("a") {
			t.Fatal("it is gone after nine seconds")
		}
		c.allocate("10.0.0.9") // by a server that has not heard of the deletion
		pass(time.Minute)
		c.want("when an address was allocated meanwhile", "a", stays("10.0.0.9 of Service shop/web"))
		if reasons := p.Reasons("a"); len(reasons) != 1 || !strings.HasPrefix(reasons[0], codeInUse+": ") {
			t.Errorf("a minute later the reasons are %q", reasons)
		}
	})
}

func TestTwoServiceCIDRsOfOneRangeDoNotRelyOnEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.create("a", "10.0.0.0/24")
		c.create("b", "10.0.0.0/24")
		c.start()
		c.allocate("10.0.0.9")
		c.delete("a")
		c.delete("b")
		pass(time.Minute)
		if c.gone("a") || c.gone("b") {
			t.Fatal("one is gone, and an address is in use")
		}
		c.want("beside b", "a", stays("10.0.0.9 of Service shop/web"))
		c.want("beside a", "b", stays("10.0.0.9 of Service shop/web"))
		c.create("c", "10.0.0.0/16")
		pass(time.Minute)
		if !c.gone("a") || !c.gone("b") {
			t.Error("there is another one with their addresses, and they stay")
		}
	})
}

func TestAnAddressThatTheCacheDoesNotHaveHoldsAServiceCIDR(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.create("a", "10.0.0.0/24")
		c.start()
		c.addresses.HoldWatches(true)
		c.allocate("10.0.0.9")
		c.delete("a")
		pass(time.Minute)
		if c.gone("a") {
			t.Fatal("it is gone, and an address is in use")
		}
		c.want("behind an old cache", "a", stays("10.0.0.9 of Service shop/web"))
		c.free("10.0.0.9")
		pass(time.Minute)
		if !c.gone("a") {
			t.Error("it stays without an address")
		}
	})
}

func TestFaultsChangeNothing(t *testing.T) {
	for name, fault := range map[string]func(*fakeapi.Resource){
		"conflicts":        func(r *fakeapi.Resource) { r.RefuseNext(3, "patch", conflict()) },
		"an error":         func(r *fakeapi.Resource) { r.RefuseNext(3, "patch", fakeapi.Unavailable(0)) },
		"answers lost":     func(r *fakeapi.Resource) { r.LoseNext(3, "patch") },
		"lists refused":    func(r *fakeapi.Resource) { r.RefuseNext(3, "list", fakeapi.Unavailable(0)) },
		"watches that lag": func(r *fakeapi.Resource) { r.LagWatches(func() time.Duration { return time.Second }) },
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.start()
			fault(c.cidrs)
			c.create("a", "10.0.0.0/24")
			c.allocate("10.0.0.9")
			pass(time.Minute)
			c.want("with "+name, "a", isReady)
			fault(c.cidrs)
			c.delete("a")
			pass(time.Minute)
			c.want("with "+name, "a", stays("10.0.0.9 of Service shop/web"))
			fault(c.cidrs)
			c.free("10.0.0.9")
			pass(time.Minute)
			if !c.gone("a") {
				t.Errorf("with %s it stays", name)
			}
		})
	}
}

func conflict() *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Code: 409, Reason: metav1.StatusReasonConflict, Message: "the object has been modified"}
}

func TestAConditionThatCannotBeWrittenHasAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.cidrs.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Subresource == "status" {
				return fakeapi.Forbidden("servicecidrs/status")
			}
			return nil
		})
		c.start()
		c.create("a", "10.0.0.0/24")
		events, err := fakeapi.Objects[*eventsv1.Event](c.events)
		if err != nil || len(events) != 1 || events[0].Reason != "KubernetesServiceCIDRError" || events[0].Type != "Warning" {
			t.Errorf("%v, %v", events, err)
		}
	})
}

func TestAKilledProcessIsFinishedByTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start().Kill()
		c.create("a", "10.0.0.0/24")
		c.start().Kill()
		c.want("after a kill", "a", isReady)
		c.delete("a")
		c.start().Kill()
		pass(time.Minute)
		p := c.start()
		if !c.gone("a") {
			t.Error("it stays")
		}
		if n := len(p.Writes()); n != 1 {
			t.Errorf("%d writes of the last process, want 1", n)
		}
	})
}

func TestWithoutWorkersItIsRefused(t *testing.T) {
	mgr, err := manager.New(fakeapi.New().Config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(mgr, Options{}); err == nil || !strings.Contains(err.Error(), "0 workers") {
		t.Errorf("%v", err)
	}
}
