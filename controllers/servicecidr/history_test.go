// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecidr

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// late is for how long an API server may allocate addresses of a ServiceCIDR that is being deleted:
// it has not heard of the deletion.
const late = 8 * time.Second

// history is a random history of ServiceCIDRs whose ranges overlap, and of addresses, which API
// servers allocate from those that are ready.
type history struct {
	*cluster
	random  *rand.Rand
	made    int
	deleted map[string]deletion // by name
}

// deletion is how a ServiceCIDR was when it was deleted.
type deletion struct {
	at                time.Time
	ready, finalizers bool
}

// pool are the ranges. Some lie in others, and one is there twice.
var pool = []string{"10.0.0.0/24", "10.0.0.0/24", "10.0.0.0/25", "10.0.0.128/25", "10.0.0.0/23", "10.0.1.0/24"}

func (h *history) all() []*networkingv1.ServiceCIDR {
	h.t.Helper()
	all, err := fakeapi.Objects[*networkingv1.ServiceCIDR](h.cidrs)
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// step changes one thing.
func (h *history) step() {
	h.t.Helper()
	all := h.all()
	switch n := h.random.IntN(10); {
	case n < 2 || len(all) == 0:
		h.made++
		if err := h.cidrs.Add(cidr(fmt.Sprint("c", h.made), "", pool[h.random.IntN(len(pool))])); err != nil {
			h.t.Fatal(err)
		}
	case n < 4:
		c := all[h.random.IntN(len(all))]
		if c.DeletionTimestamp == nil {
			h.deleted[c.Name] = deletion{time.Now(), isReadyNow(c), len(c.Finalizers) > 0}
		}
		key := object.KeyOf(c)
		if err := client.For[*networkingv1.ServiceCIDR](h.client).Delete(h.t.Context(), key); err != nil && !client.AbsentAt(err, key) {
			h.t.Fatal(err)
		}
	case n < 8:
		ip := fmt.Sprintf("10.0.%d.%d", h.random.IntN(2), 1+h.random.IntN(254))
		if slices.ContainsFunc(all, func(c *networkingv1.ServiceCIDR) bool { return h.open(c) && contains(c, ip) }) {
			if err := h.addresses.Put(address(ip)); err != nil {
				h.t.Fatal(err)
			}
		}
	default:
		if keys := h.addresses.Keys(); len(keys) > 0 {
			h.addresses.Remove(object.Key{Name: keys[h.random.IntN(len(keys))]})
		}
	}
}

// open reports whether some API server allocates addresses of a ServiceCIDR. None does so before the
// condition Ready is there, which comes after the finalizer.
func (h *history) open(c *networkingv1.ServiceCIDR) bool {
	if c.DeletionTimestamp == nil {
		return isReadyNow(c)
	}
	d := h.deleted[c.Name]
	return d.ready && time.Since(d.at) < late
}

func isReadyNow(c *networkingv1.ServiceCIDR) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
}

// contains reports whether an API server can allocate an address of a ServiceCIDR: not the first one
// of its range, and of an IPv4 range not the last one.
func contains(c *networkingv1.ServiceCIDR, ip string) bool {
	address := netip.MustParseAddr(ip)
	return slices.ContainsFunc(c.Spec.CIDRs, func(text string) bool {
		r := netip.MustParsePrefix(text)
		return r.Contains(address) && r.Contains(address.Next()) && r.Contains(address.Prev())
	})
}

// check holds that each address lies in a ServiceCIDR that exists, and that none goes before API
// servers have heard of its deletion.
func (h *history) check() {
	h.t.Helper()
	all := h.all()
	for _, ip := range h.addresses.Keys() {
		if !slices.ContainsFunc(all, func(c *networkingv1.ServiceCIDR) bool { return contains(c, ip) }) {
			h.t.Errorf("address %s lies in no ServiceCIDR", ip)
		}
	}
	for name, d := range h.deleted {
		// The API has the time of a deletion in whole seconds.
		if d.finalizers && h.gone(name) && time.Since(d.at) <= grace-time.Second {
			h.t.Errorf("ServiceCIDR %s went %s after its deletion", name, time.Since(d.at))
		}
		if h.gone(name) {
			delete(h.deleted, name)
		}
	}
}

// rest holds what must be true when nothing happens any more: a ServiceCIDR that is being deleted
// is there only for an address that no other one has, and says so. All others are ready.
func (h *history) rest() {
	h.t.Helper()
	all := h.all()
	for _, c := range all {
		if !slices.Contains(c.Finalizers, Finalizer) {
			h.t.Errorf("ServiceCIDR %s has the finalizers %q", c.Name, c.Finalizers)
		}
		if isReadyNow(c) != (c.DeletionTimestamp == nil) {
			h.t.Errorf("ServiceCIDR %s is deleted at %v, and its status is %+v", c.Name, c.DeletionTimestamp, c.Status)
		}
		if c.DeletionTimestamp == nil {
			continue
		}
		if !slices.ContainsFunc(h.addresses.Keys(), func(ip string) bool {
			return contains(c, ip) && !slices.ContainsFunc(all, func(other *networkingv1.ServiceCIDR) bool {
				return other.DeletionTimestamp == nil && contains(other, ip)
			})
		}) {
			h.t.Errorf("ServiceCIDR %s is being deleted, and no address needs it", c.Name)
		}
	}
}

// TestNoAddressLosesItsServiceCIDRInRandomHistories has users, API servers that hear late of deletions,
// watches that lag, and processes that are killed.
func TestNoAddressLosesItsServiceCIDRInRandomHistories(t *testing.T) {
	went := 0
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			t.Logf("seed %d", seed)
			h := &history{cluster: newCluster(t), random: rand.New(rand.NewPCG(seed, 3)), deleted: map[string]deletion{}}
			p := h.start()
			var turn sync.Mutex // requests ask for the lag at the same time
			lag := rand.New(rand.NewPCG(seed, 7))
			h.api.LagWatches(func() time.Duration {
				turn.Lock()
				defer turn.Unlock()
				return time.Duration(lag.IntN(300)) * time.Millisecond
			})
			for range 150 {
				h.step()
				pass(time.Duration(h.random.IntN(3000)) * time.Millisecond)
				h.check()
				if h.random.IntN(25) == 0 {
					p.Kill()
					p = h.start()
				}
			}
			pass(time.Minute)
			h.check()
			h.rest()
			went += h.made - len(h.all())
			writes := len(p.Writes())
			if pass(time.Hour); len(p.Writes()) > writes {
				t.Errorf("nothing happens, and it writes %q", p.Writes()[writes:])
			}
		})
	}
	if went < 6 {
		t.Errorf("%d ServiceCIDRs went, which is too few to show anything", went)
	}
}
