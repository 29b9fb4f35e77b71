// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A claim names a volume, cannot be bound to it, and goes. The volume is then for others.
func TestAVolumeWhoseClaimGoesBeforeItIsBoundIsAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		refuse := true
		c.volumes.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" && q.Subresource == "" && refuse { // an admission webhook, say
				return fakeapi.Forbidden("persistentvolumes")
			}
			return nil
		})
		c.start()
		c.add(newClaim("first", naming("v")))
		c.add(newVolume("v", "1Gi"))
		c.add(newClaim("second"))
		pass(time.Second)
		refuse = false
		c.claims.Remove(claimKey("first"))
		pass(time.Hour)
		c.wantBound("second", "v")
		if phase := c.volume("v").Status.Phase; phase != corev1.VolumeBound {
			t.Errorf("an hour after the claim went, the volume is %q", phase)
		}
	})
}

// The volume that a claim chooses has the name of the claim, and is gone: the cache does not say so yet.
func TestAClaimWhoseVolumeOfTheSameNameIsGoneGetsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.add(newVolume("data", "1Gi"))
		c.add(newVolume("other", "2Gi"))
		c.volumes.HoldWatches(true)
		c.volumes.Remove(object.Key{Name: "data"})
		c.add(newClaim("data"))
		pass(time.Second)
		c.volumes.HoldWatches(false)
		pass(time.Hour)
		c.wantBound("data", "other")
	})
}

// The watch of claims breaks, and a claim gets a volume from its driver and is deleted before the next one. The cache shows nothing of it.
func TestAVolumeOfAClaimThatTheCacheNeverShowsIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.claims.HoldWatches(true)
		c.add(newClaim("data"))
		v := made(c.claim("data"), "1Gi")
		c.add(v)
		pass(time.Second)
		c.claims.Remove(claimKey("data"))
		c.api.Compact(c.api.ResourceVersion())
		c.api.CutConnections()
		pass(time.Minute) // the informer lists again
		c.claims.HoldWatches(false)
		pass(time.Hour)
		c.wantPhase(volumes.NameFor(string(v.Spec.ClaimRef.UID)), corev1.VolumeReleased)
	})
}

// Another process has just bound a claim, and the cache does not show its volume yet.
func TestAClaimWhoseVolumeTheCacheDoesNotHaveYetIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.volumes.HoldWatches(true)
		c.addPair("v")
		c.wantBound("data", "v")
		if notes := c.notes(reasonClaimLost); len(notes) > 0 {
			t.Errorf("the Events say %q", notes)
		}
	})
}

// The same, and the volume goes before the cache shows it.
func TestAClaimWhoseVolumeTheCacheNeverShowsIsLostWhenItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.volumes.HoldWatches(true)
		c.addPair("v")
		c.wantBound("data", "v")
		c.volumes.Remove(object.Key{Name: "v"})
		c.api.Compact(c.api.ResourceVersion())
		c.api.CutConnections()
		pass(time.Minute) // the informer lists again
		c.volumes.HoldWatches(false)
		pass(time.Hour)
		if phase := c.claim("data").Status.Phase; phase != corev1.ClaimLost {
			t.Errorf("an hour after the volume went, the claim is %q", phase)
		}
	})
}

// addPair adds a claim called data and a volume as another process has bound them to each other.
func (c *cluster) addPair(volume string) {
	c.t.Helper()
	c.add(newVolume(volume, "1Gi", referring("1"), func(volume *corev1.PersistentVolume) { volume.Status.Phase = corev1.VolumeBound }))
	c.add(newClaim("data", naming(volume), annotated(volumes.BindCompleted), func(claim *corev1.PersistentVolumeClaim) {
		claim.UID = "1"
		claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: claim.Spec.AccessModes, Capacity: storage("1Gi")}
	}))
}

// A proxy without servers answers 404 about claims that exist. What is decided from the absence of a claim may delete its volume.
func TestA404OfAProxyReleasesNoVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		away := true
		c.claims.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "get" || !away {
				return nil
			}
			return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "page not found"}
		})
		c.start()
		c.claims.HoldWatches(true)
		c.add(newClaim("data"))
		v := made(c.claim("data"), "1Gi")
		c.add(v)
		pass(time.Minute)
		name := volumes.NameFor(string(v.Spec.ClaimRef.UID))
		if phase := c.volume(name).Status.Phase; phase == corev1.VolumeReleased {
			t.Errorf("the volume is %s although its claim exists", phase)
		}
		away = false
		c.claims.HoldWatches(false)
		pass(time.Hour)
		c.wantPhase(name, corev1.VolumeBound)
	})
}
