// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// breakWatch has the watch of a kind break. What has come and gone since its watches are held is never shown.
func (c *cluster) breakWatch(of *fakeapi.Resource) {
	c.t.Helper()
	c.api.Compact(c.api.ResourceVersion())
	c.api.CutConnections()
	pass(time.Minute) // the informer lists again
	of.HoldWatches(false)
	pass(time.Hour)
}

// addShared adds a claim that no template made.
func (c *cluster) addShared() {
	c.t.Helper()
	check(c.t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shared"}}))
}

// addClaimOf adds a claim that another process made for the entry dev of a Pod.
func (c *cluster) addClaimOf(p *corev1.Pod, name string) {
	c.t.Helper()
	check(c.t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Annotations: map[string]string{resourcev1.PodResourceClaimAnnotation: "dev"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)}},
	}}))
}

// addPodNaming adds a Pod whose status names the claim of its entry dev.
func (c *cluster) addPodNaming(claim string) {
	c.t.Helper()
	p := pod("train", "", "dev:gpu")
	p.UID = "train"
	p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "dev", ResourceClaimName: &claim}}
	c.addClaimOf(p, claim)
	check(c.t, c.pods.Add(p))
}

// The watch of Pods breaks, and a Pod reserves a claim and is deleted before the next one. The cache shows nothing of it.
func TestAPodThatTheCacheNeverShowsReservesItsClaimNoLongerThanItExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addShared()
		c.start()
		c.pods.HoldWatches(true)
		p := c.addPod("a", "n", "dev=shared")
		c.allocate("shared", p)
		pass(time.Second)
		c.pods.Remove(in("a"))
		c.breakWatch(c.pods)
		if claim := c.claim("shared"); len(reserved(claim)) > 0 || claim.Status.Allocation != nil {
			t.Errorf("an hour after the Pod the claim is reserved for %q", reserved(claim))
		}
	})
}

func TestAPodGroupThatTheCacheNeverShowsReservesItsClaimNoLongerThanItExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGroupCluster(t)
		c.addShared()
		c.manage(true, true)
		c.groups.HoldWatches(true)
		c.reserveForGroup(c.addGroup("gang", "dev=shared"))
		pass(time.Second)
		if got := reserved(c.claim("shared")); !slices.Equal(got, []string{"gang"}) {
			t.Fatalf("while the PodGroup exists, the claim is reserved for %q", got)
		}
		c.groups.Remove(in("gang"))
		c.breakWatch(c.groups)
		if claim := c.claim("shared"); len(reserved(claim)) > 0 || claim.Status.Allocation != nil {
			t.Errorf("an hour after the PodGroup the claim is reserved for %q", reserved(claim))
		}
	})
}

// The status of the Pod names a claim that another process made. It is deleted by mistake.
func TestAPodGetsAClaimAfterOneThatTheCacheNeverShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addTemplate("gpu")
		c.start()
		c.claims.HoldWatches(true)
		c.addPodNaming("train-dev-first")
		pass(time.Second)
		c.wantClaims("at first", "train-dev-first")
		c.claims.Remove(in("train-dev-first"))
		c.breakWatch(c.claims)
		if claim := c.only("an hour later"); *c.pod("train").Status.ResourceClaimStatuses[0].ResourceClaimName != claim.Name {
			t.Errorf("the claim is %s, and the status of the Pod names %+v", claim.Name, c.pod("train").Status.ResourceClaimStatuses)
		}
	})
}

// A proxy without servers, for example, answers 404 about every claim.
func TestAClaimOfWhichOnlyAProxySaysThatItIsGoneIsNotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addTemplate("gpu")
		c.start()
		c.claims.HoldWatches(true)
		c.claims.RefuseNext(3, "get", &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "404 page not found"})
		c.addPodNaming("train-dev-first")
		pass(time.Minute)
		c.claims.HoldWatches(false)
		pass(time.Minute)
		c.wantClaims("after three such answers", "train-dev-first")
	})
}
