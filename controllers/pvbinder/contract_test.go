// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// The scheduler and a kube-controller-manager that takes over rely on this order: after each write, the
// next one follows from what is stored.
func TestABindingIsFourWritesInUpstreamsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(newVolume("v", "1Gi", func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeAvailable }))
		c.add(newClaim("data"))
		var writes []string
		c.api.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" {
				writes = append(writes, q.String())
			}
			return nil
		})
		c.start()
		pass(time.Minute)
		c.wantBound("data", "v")
		want := []string{
			"update /api/v1/persistentvolumes/v", "update /api/v1/persistentvolumes/v/status",
			"update /api/v1/namespaces/ns/persistentvolumeclaims/data", "update /api/v1/namespaces/ns/persistentvolumeclaims/data/status",
		}
		if !slices.Equal(writes, want) {
			t.Errorf("the writes are %q, want %q", writes, want)
		}
	})
}

func TestWhichVolumesFitAClaim(t *testing.T) {
	labelled := func(v *corev1.PersistentVolume) { v.Labels = map[string]string{"disk": "fast"} }
	selects := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "fast"}}
	}
	blockVolume := func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	blockClaim := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	goldVolume := func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("gold") }
	goldClaim := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("gold") }
	many := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	goes := func(v *corev1.PersistentVolume) {
		v.Finalizers, v.DeletionTimestamp = []string{"kubernetes.io/pv-protection"}, &metav1.Time{Time: time.Now()}
	}
	type (
		ofVolume = func(*corev1.PersistentVolume)
		ofClaim  = func(*corev1.PersistentVolumeClaim)
	)
	for _, test := range []struct {
		name   string
		volume []ofVolume
		claim  []ofClaim
		fits   bool
	}{
		{"plain", nil, nil, true},
		{"of another class", []ofVolume{inClass("gold")}, nil, false},
		{"of the claim's class", []ofVolume{inClass("gold")}, []ofClaim{ofClass("gold")}, true},
		{"without the labels", nil, []ofClaim{selects}, false},
		{"with the labels", []ofVolume{labelled}, []ofClaim{selects}, true},
		{"with labels that nobody selects", []ofVolume{labelled}, nil, true},
		{"of blocks, for a file system", []ofVolume{blockVolume}, nil, false},
		{"of files, for a block device", nil, []ofClaim{blockClaim}, false},
		{"of blocks, for a block device", []ofVolume{blockVolume}, []ofClaim{blockClaim}, true},
		{"with attributes that the claim does not name", []ofVolume{goldVolume}, nil, false},
		{"without the attributes that the claim names", nil, []ofClaim{goldClaim}, false},
		{"with the attributes that the claim names", []ofVolume{goldVolume}, []ofClaim{goldClaim}, true},
		{"for one node, for a claim for many", nil, []ofClaim{many}, false},
		{"that is being deleted", []ofVolume{goes}, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.start()
				c.add(newVolume("v", "1Gi", test.volume...))
				c.add(newClaim("data", test.claim...))
				pass(time.Minute)
				if test.fits {
					c.wantBound("data", "v")
				} else {
					c.wantPending("data")
				}
			})
		})
	}
}

// Capacity and attributes of a bound claim are the resizer's.
func TestAClaimTakesCapacityAndAttributesWhenItBecomesBoundAndNotLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.add(newVolume("v", "2Gi", func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("gold") }))
		c.add(newClaim("data", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = new("gold") }))
		c.wantBound("data", "v")
		want := func(when string) {
			t.Helper()
			s := c.claim("data").Status
			if class := s.CurrentVolumeAttributesClassName; class == nil || *class != "gold" || size(s.Capacity) != 2<<30 {
				t.Errorf("%s the status is %+v", when, s)
			}
		}
		want("when it becomes bound")
		must(t, fakeapi.Change(c.volumes, object.Key{Name: "v"}, func(v *corev1.PersistentVolume) {
			v.Spec.Capacity, v.Spec.VolumeAttributesClassName = storage("5Gi"), new("silver")
		}))
		pass(time.Minute)
		want("after the volume has changed")
	})
}

func TestTwoClaimsThatSayTheyAreBoundToOneVolumeAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.add(newVolume("v", "1Gi"))
		c.add(newClaim("data"))
		c.wantBound("data", "v")
		c.add(newClaim("other", naming("v"), annotated(volumes.BindCompleted)))
		pass(time.Minute)
		if phase := c.claim("other").Status.Phase; phase != corev1.ClaimLost {
			t.Errorf("the second claim is %s", phase)
		}
		c.wantNote(reasonClaimMisbound, "Two claims are bound to the same volume, this one is bound incorrectly")
		c.wantBound("data", "v")
	})
}

func TestADirectoryIsMadeForAClaimAndRemovedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.start(func(o *Options) { o.HostPath = true })
		c.add(newClass("dirs", volumes.HostPathPlugin, immediate))
		uid := types.UID(fmt.Sprintf("setpoint-test-%x", rand.Uint64())) // the directory is shared by the machine
		c.add(newClaim("data", ofClass("dirs"), func(claim *corev1.PersistentVolumeClaim) { claim.UID = uid }))
		name := "pvc-" + string(uid)
		path := "/tmp/hostpath_pv/" + string(uid)
		t.Cleanup(func() { _ = os.RemoveAll(path) }) // if the test fails; otherwise it is gone
		c.wantBound("data", name)
		v := c.volume(name)
		if v.Annotations[volumes.ProvisionedBy] != volumes.HostPathPlugin || !slices.Equal(v.Finalizers, []string{volumes.InTreeFinalizer}) || v.Spec.HostPath.Path != path {
			t.Errorf("the volume is %+v %+v", v.ObjectMeta, v.Spec)
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			t.Errorf("the directory: %v, %v", info, err)
		}
		c.wantNote(reasonProvisioningSucceeded, "Successfully provisioned volume "+name+" using kubernetes.io/host-path")
		p.Kill()
		c.claims.Remove(claimKey("data"))
		c.start(func(o *Options) { o.HostPath = true })
		pass(time.Minute)
		if keys := c.volumes.Keys(); len(keys) > 0 {
			t.Errorf("there are the volumes %q", keys)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("the directory: %v", err)
		}
	})
}

// The scheduler may find another Node, and the Event says why it has to.
func TestANodeForWhichNoDirectoryCanBeMadeIsChosenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start(func(o *Options) { o.HostPath = true })
		c.add(newClass("dirs", volumes.HostPathPlugin, consumer))
		uid := types.UID(fmt.Sprintf("setpoint-test-%x", rand.Uint64())) // the directory is shared by the machine
		path := "/tmp/hostpath_pv/" + string(uid)
		must(t, os.MkdirAll("/tmp/hostpath_pv", 0o750))
		must(t, os.WriteFile(path, nil, 0o600)) // is in the way
		t.Cleanup(func() { _ = os.RemoveAll(path) })
		c.add(newClaim("data", ofClass("dirs"), func(claim *corev1.PersistentVolumeClaim) {
			claim.UID, claim.Annotations = uid, map[string]string{volumes.SelectedNode: "n"}
		}))
		c.wantNote(reasonProvisioningFailed, `Failed to provision volume with StorageClass "dirs": mkdir `+path+": not a directory")
		if node, is := c.claim("data").Annotations[volumes.SelectedNode]; is {
			t.Errorf("the Node %s is still chosen", node)
		}
		c.wantNote(reasonFirstConsumer, "waiting for first consumer to be created before binding")
		c.quiet("until a Node is chosen", time.Hour)
		must(t, os.Remove(path))
		must(t, fakeapi.Change(c.claims, claimKey("data"), func(claim *corev1.PersistentVolumeClaim) {
			claim.Annotations = map[string]string{volumes.SelectedNode: "other"}
		}))
		pass(time.Second)
		c.wantBound("data", "pvc-"+string(uid))
	})
}

func TestWithoutItsFlagNoDirectoryIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.add(newClass("dirs", volumes.HostPathPlugin, immediate))
		c.add(newClaim("data", ofClass("dirs")))
		c.wantPending("data")
		c.wantNote(reasonProvisioningFailed, `Failed to create provisioner: provisioning in volume plugin "kubernetes.io/host-path" is disabled`)
		c.quiet("without the flag", time.Hour)
	})
}
