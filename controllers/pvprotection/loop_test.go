// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvprotection

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestAVolumeStaysWhileItIsBoundAndThenGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		volumes := fakeapi.New().Serve(object.Resource{Version: "v1", Plural: "persistentvolumes", Kind: "PersistentVolume"}, fakeapi.WithStatus())
		plain, err := client.New(volumes.Config())
		if err != nil {
			t.Fatal(err)
		}
		volume := client.For[*corev1.PersistentVolume](plain)
		managertest.Run(t, volumes.Config(), managertest.Making(New, Defaults()))
		settle := func() {
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		for name, phase := range map[string]corev1.PersistentVolumePhase{"bound": corev1.VolumeBound, "free": corev1.VolumeAvailable, "old": corev1.VolumeReleased} {
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{Finalizer}}, Status: corev1.PersistentVolumeStatus{Phase: phase}}
			if name == "old" { // of before the admission
				pv.Finalizers = []string{"example.com/x"}
			}
			if err := volumes.Add(pv); err != nil {
				t.Fatal(err)
			}
		}
		settle()
		if f := volumes.Get(object.Key{Name: "old"}).GetFinalizers(); !slices.Equal(f, []string{"example.com/x", Finalizer}) {
			t.Errorf("a volume without the finalizer has %q now", f)
		}
		for _, name := range volumes.Keys() {
			if err := volume.Delete(t.Context(), object.Key{Name: name}); err != nil {
				t.Fatal(err)
			}
		}
		settle()
		if got := volumes.Keys(); !slices.Equal(got, []string{"bound", "old"}) {
			t.Errorf("there are %q", got)
		}
		if f := volumes.Get(object.Key{Name: "old"}).GetFinalizers(); !slices.Equal(f, []string{"example.com/x"}) {
			t.Errorf("the volume that another finalizer keeps has %q", f)
		}
		bound, err := volume.Get(t.Context(), object.Key{Name: "bound"})
		if err != nil {
			t.Fatal(err)
		}
		bound.Status.Phase = corev1.VolumeReleased
		if _, err := volume.UpdateStatus(t.Context(), bound); err != nil {
			t.Fatal(err)
		}
		settle()
		if got := volumes.Keys(); !slices.Equal(got, []string{"old"}) {
			t.Errorf("there are %q when the volume is released", got)
		}
	})
}

func TestAVolumeThatIsNotRemovedNamesItsClaim(t *testing.T) {
	bound := &corev1.PersistentVolume{
		Spec:   corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "files"}},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	if users, err := usedBy(t.Context(), bound); err != nil || !slices.Equal(users, []string{"PersistentVolumeClaim shop/files"}) {
		t.Errorf("%q, %v; want the claim", users, err)
	}
	bound.Status.Phase = corev1.VolumeReleased
	if users, err := usedBy(t.Context(), bound); err != nil || len(users) > 0 {
		t.Errorf("a volume that is not bound is used by %q (%v)", users, err)
	}
}
