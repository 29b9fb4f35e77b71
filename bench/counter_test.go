// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestClaimsAreCountedOnceAlsoAfterTheServerHasEndedTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New()
		defer api.Close()
		served := api.Serve(object.Resource{Version: "v1", Plural: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true})
		c, err := client.New(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		claims, err := countBoundClaims(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: claimName(i)}}
			for _, phase := range []corev1.PersistentVolumeClaimPhase{corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimBound} {
				claim.Status.Phase = phase
				claim.Labels = map[string]string{"write": fmt.Sprint(len(served.Requests()))}
				if err := served.Put(claim); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			if n := claims.seen(); n != i+1 {
				t.Errorf("%d claims are counted, want %d", n, i+1)
			}
			api.CutConnections()
			synctest.Wait()
		}
		alive := func() error { return nil }
		if err := claims.reach(t.Context(), 3, alive); err != nil {
			t.Error(err)
		}
	})
}
