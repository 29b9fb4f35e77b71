// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"testing"
	"testing/synctest"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// The cache still has the Pod that had the name before.
func TestAPodOfWhichTheCacheHasThePredecessorKeepsItsReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addShared()
		first := c.addPod("a", "n", "dev=shared")
		c.allocate("shared", first)
		c.start()
		pass(time.Second)
		c.pods.HoldWatches(true)
		c.pods.Remove(in("a"))
		second := c.addPod("a", "n", "dev=shared")
		check(t, fakeapi.Change(c.claims, in("shared"), func(claim *resourcev1.ResourceClaim) {
			claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "a", UID: second.UID}}
		}))
		pass(time.Minute)
		c.pods.HoldWatches(false)
		pass(time.Minute)
		if claim := c.claim("shared"); len(claim.Status.ReservedFor) != 1 || claim.Status.ReservedFor[0].UID != second.UID || claim.Status.Allocation == nil {
			t.Errorf("the claim is reserved for %q, allocated %v", reserved(claim), claim.Status.Allocation != nil)
		}
	})
}

// reserveForGroup has the claim shared allocated, and reserved for a PodGroup.
func (c *groupCluster) reserveForGroup(group *schedulingv1beta1.PodGroup) {
	c.t.Helper()
	check(c.t, fakeapi.Change(c.claims, in("shared"), func(claim *resourcev1.ResourceClaim) {
		allocate(claim)
		claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: group.Name, UID: group.UID}}
	}))
}

func TestAPodGroupOfWhichTheCacheHasThePredecessorKeepsItsReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGroupCluster(t)
		c.addShared()
		c.addGroup("gang", "dev=shared")
		c.manage(true, true)
		c.groups.HoldWatches(true)
		c.groups.Remove(in("gang"))
		second := c.addGroup("gang", "dev=shared")
		c.reserveForGroup(second)
		pass(time.Minute)
		c.groups.HoldWatches(false)
		pass(time.Minute)
		if claim := c.claim("shared"); len(claim.Status.ReservedFor) != 1 || claim.Status.ReservedFor[0].UID != second.UID || claim.Status.Allocation == nil {
			t.Errorf("the claim is reserved for %q, allocated %v", reserved(claim), claim.Status.Allocation != nil)
		}
	})
}

// Another process made the claim, for a Pod that it sees and this one does not.
func TestAPodOfWhichTheCacheHasThePredecessorKeepsItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addPod("train", "")
		c.start()
		c.pods.HoldWatches(true)
		c.pods.Remove(in("train"))
		c.addClaimOf(c.addPod("train", "", "dev:gpu"), "train-dev-first")
		pass(time.Minute)
		c.wantClaims("while the cache has the predecessor", "train-dev-first")
		c.pods.HoldWatches(false)
		pass(time.Minute)
		c.wantClaims("later", "train-dev-first")
	})
}
