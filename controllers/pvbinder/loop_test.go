// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestAClaimGetsTheSmallestVolumeThatFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		for name, size := range map[string]string{"small": "500Mi", "fits": "2Gi", "large": "5Gi"} {
			c.add(newVolume(name, size))
			c.wantPhase(name, corev1.VolumeAvailable)
		}
		c.add(newVolume("shared", "1Gi", func(v *corev1.PersistentVolume) {
			v.Spec.AccessModes = append(v.Spec.AccessModes, corev1.ReadWriteMany)
		}))
		c.add(newClaim("data"))
		c.wantBound("data", "fits")
		if claim, volume := c.claim("data"), c.volume("fits"); claim.Annotations[volumes.BoundByController] != "yes" || volume.Annotations[volumes.BoundByController] != "yes" {
			t.Errorf("the annotations are %v and %v", claim.Annotations, volume.Annotations)
		}
		c.wantPhase("shared", corev1.VolumeAvailable)
		c.add(newClaim("files", func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}))
		c.wantBound("files", "shared")
	})
}

func TestAVolumeThatComesLaterIsGivenToTheOldestClaimThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		for _, name := range []string{"z", "b", "a"} {
			c.add(newClaim(name, ofClass("")))
			c.wantPending(name)
		}
		c.add(newVolume("one", "1Gi"))
		c.wantBound("z", "one")
		c.claims.Remove(claimKey("b"))
		synctest.Wait() // a claim that the cache still has would get the volume
		c.add(newVolume("two", "1Gi"))
		c.wantBound("a", "two")
		c.wantNote(reasonFailedBinding, "no persistent volumes available for this claim and no storage class is set")
	})
}

func TestPairsThatAUserChoseAreBoundAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		began := time.Now()
		for i := range 50 {
			// The volume first, the claim first; one names the other, both do.
			pair := fmt.Sprint("pair-", i)
			volume, claim := newVolume(pair, "1Gi"), newClaim(pair)
			if i%3 != 0 {
				reservedFor(pair)(volume)
			}
			if i%3 != 1 {
				naming(pair)(claim)
			}
			// Any free volume fits a claim that names none, so the pair before has to be bound.
			synctest.Wait()
			if i%2 == 0 {
				must(t, c.volumes.Add(volume), c.claims.Add(claim))
			} else {
				must(t, c.claims.Add(claim), c.volumes.Add(volume))
			}
		}
		pass(time.Second)
		for i := range 50 {
			pair := fmt.Sprint("pair-", i)
			c.wantBound(pair, pair)
			_, ours := c.volume(pair).Annotations[volumes.BoundByController]
			if ours != (i%3 == 0) {
				t.Errorf("volume %s is marked as bound by the controller: %t", pair, ours)
			}
			if _, ours = c.claim(pair).Annotations[volumes.BoundByController]; ours != (i%3 == 1) {
				t.Errorf("claim %s is marked as bound by the controller: %t", pair, ours)
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the pairs were bound after %s", took)
		}
	})
}

// must fails the test at the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestABindingIsTakenUpAfterEachOfItsWrites(t *testing.T) {
	for lost := range 5 {
		for _, answer := range []string{"refused", "lost"} {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.add(newVolume("v", "1Gi", func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeAvailable }))
				c.add(newClaim("data"))
				writes := 0
				nth := func(q *fakeapi.Request) bool {
					if q.Verb == "update" {
						writes++
						return writes == lost+1
					}
					return false
				}
				if answer == "lost" {
					c.api.LoseAnswer(nth)
				} else {
					c.api.Before(func(q *fakeapi.Request) *metav1.Status {
						if nth(q) {
							return fakeapi.Forbidden("x")
						}
						return nil
					})
				}
				c.start()
				pass(10 * time.Minute)
				c.wantBound("data", "v")
			})
		}
	}
}

func TestAVolumeThatTheSchedulerTakesIsNotGivenToAnotherClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.add(newVolume("v", "1Gi"))
		c.add(newVolume("w", "2Gi"))
		c.volumes.HoldWatches(true)
		other := newClaim("other", ofClass("slow"))
		other.UID = "other"
		must(t, fakeapi.Change(c.volumes, object.Key{Name: "v"}, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = referenceTo(other) }))
		c.add(newClaim("data"))
		pass(time.Second)
		c.volumes.HoldWatches(false)
		pass(time.Second)
		c.wantBound("data", "w")
		if c.volume("v").Spec.ClaimRef.UID != "other" {
			t.Error("the volume of the scheduler was taken")
		}
	})
}

func TestAClaimOfAClassThatWaitsNamesThePodsThatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.add(newClass("slow", "csi.example.com", consumer))
		c.add(newVolume("free", "1Gi", inClass("slow")))
		c.add(newClaim("data", ofClass("slow")))
		c.wantPending("data")
		c.wantNote(reasonFirstConsumer, "waiting for first consumer to be created before binding")
		for _, name := range []string{"web-1", "web-0"} {
			c.add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
			}}})
		}
		c.wantNote(reasonPodScheduled, "waiting for pod web-1 to be scheduled")
		c.wantNote(reasonPodScheduled, "waiting for pods web-0,web-1 to be scheduled")
		c.wantPhase("free", corev1.VolumeAvailable)

		// The scheduler finds a Node, and no free volume there.
		must(t, fakeapi.Change(c.claims, claimKey("data"), func(claim *corev1.PersistentVolumeClaim) {
			claim.Annotations = map[string]string{volumes.SelectedNode: "n"}
		}))
		pass(time.Second)
		claim := c.claim("data")
		if claim.Annotations[volumes.StorageProvisioner] != "csi.example.com" || claim.Annotations[volumes.BetaStorageProvisioner] != "csi.example.com" {
			t.Errorf("the annotations are %v", claim.Annotations)
		}
		c.wantNote(reasonExternalProvisioning, "Waiting for a volume to be created either by the external provisioner 'csi.example.com' or manually by the system administrator. "+
			"If volume creation is delayed, please verify that the provisioner is running and correctly registered.")
		c.add(made(claim, "1Gi"))
		c.wantBound("data", volumes.NameFor(string(claim.UID)))
	})
}

// made returns the volume that a driver makes for a claim.
func made(claim *corev1.PersistentVolumeClaim, size string) *corev1.PersistentVolume {
	volume := newVolume(volumes.NameFor(string(claim.UID)), size, inClass(volumes.ClassOf(claim)), reclaimed(corev1.PersistentVolumeReclaimDelete))
	volume.Annotations = map[string]string{volumes.ProvisionedBy: "csi.example.com"}
	volume.Spec.ClaimRef = referenceTo(claim)
	return volume
}

func TestADriverThatAnswersTwiceOrLateMakesNoSecondVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.add(newClass("fast", "csi.example.com", immediate))
		c.add(newClaim("data", ofClass("fast")))
		claim := c.claim("data")
		first := made(claim, "1Gi")
		second := first.DeepCopy()
		second.Name = "again"
		c.add(first)
		c.add(second)
		c.wantBound("data", first.Name)
		c.wantPhase("again", corev1.VolumeReleased) // and its driver deletes it

		c.add(newClaim("gone", ofClass("fast")))
		gone := c.claim("gone")
		c.claims.Remove(claimKey("gone"))
		c.add(made(gone, "1Gi"))
		c.wantPhase(volumes.NameFor(string(gone.UID)), corev1.VolumeReleased)

		c.add(newClaim("wrong", ofClass("fast")))
		wrong := c.claim("wrong")
		c.add(made(wrong, "1Mi"))
		c.wantPending("wrong")
	})
}

func TestAClaimWithoutAClassGetsTheNewestDefaultOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.add(newClaim("unset"))
		c.add(newClaim("empty", ofClass("")))
		c.add(newClass("old", "csi.example.com", immediate))
		c.wantPending("unset")
		must(t, c.classes.Put(newClass("old", "csi.example.com", immediate, isDefault, created(1))))
		must(t, c.classes.Put(newClass("new", "csi.example.com", immediate, isDefault, created(2))))
		pass(time.Second)
		if class := c.claim("unset").Spec.StorageClassName; class == nil || *class != "new" && *class != "old" {
			t.Errorf("the class is %v", class)
		}
		if class := c.claim("empty").Spec.StorageClassName; *class != "" {
			t.Errorf("a claim that wants no class has got %q", *class)
		}
		c.add(newClaim("later"))
		if class := c.claim("later").Spec.StorageClassName; class == nil || *class != "new" {
			t.Errorf("of two default classes the claim has %v", class)
		}
	})
}

func TestWhyNoVolumeIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.add(newClaim("missing", ofClass("gold")))
		c.wantNote(reasonProvisioningFailed, `storageclass.storage.k8s.io "gold" not found`)
		c.add(newClass("local", volumes.NoProvisioner, immediate))
		c.add(newClaim("local", ofClass("local")))
		c.wantNote(reasonProvisioningFailed, "no volume plugin matched name: kubernetes.io/no-provisioner")
		c.add(newClass("migrated", "kubernetes.io/gce-pd", immediate))
		c.add(newClaim("migrated", ofClass("migrated")))
		if a := c.claim("migrated").Annotations; a[volumes.StorageProvisioner] != "pd.csi.storage.gke.io" {
			t.Errorf("the annotations are %v", a)
		}
		c.add(newClaim("named", naming("nowhere")))
		c.wantPending("named")
		c.add(newClass("gold", "csi.example.com", immediate))
		if a := c.claim("missing").Annotations; a[volumes.StorageProvisioner] != "csi.example.com" {
			t.Errorf("after its class was created, the annotations of the claim are %v", a)
		}
	})
}

func TestAVolumeThatIsTakenOrDoesNotFitIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.add(newVolume("v", "1Gi"))
		c.add(newVolume("small", "1Mi"))
		c.add(newClaim("first", naming("v")))
		c.wantBound("first", "v")
		c.add(newClaim("second", naming("v")))
		c.wantNote(reasonFailedBinding, `volume "v" already bound to a different claim.`)
		c.wantPending("second")
		c.add(newClaim("large", naming("small")))
		c.wantNote(reasonVolumeMismatch, `Cannot bind to requested volume "small": requested PV is too small`)
		c.wantPhase("small", corev1.VolumeAvailable)
		c.wantBound("first", "v")

		// A volume that is reserved for a claim, which names another volume.
		c.add(newVolume("reserved", "1Gi", reservedFor("elsewhere")))
		c.add(newVolume("wanted", "1Gi"))
		c.add(newClaim("elsewhere", naming("wanted")))
		c.wantBound("elsewhere", "wanted")
		c.wantPhase("reserved", corev1.VolumeAvailable)
		if c.volume("reserved").Spec.ClaimRef == nil {
			t.Error("the reservation that a user wrote is gone")
		}
	})
}

func TestALostVolumeIsTheEndOfItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.add(newVolume("v", "1Gi"))
		c.add(newClaim("data"))
		c.wantBound("data", "v")
		c.volumes.Remove(object.Key{Name: "v"})
		pass(time.Second)
		if phase := c.claim("data").Status.Phase; phase != corev1.ClaimLost {
			t.Errorf("the claim is %s", phase)
		}
		c.wantNote(reasonClaimLost, "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
		c.add(newVolume("w", "1Gi"))
		if phase := c.claim("data").Status.Phase; phase != corev1.ClaimLost {
			t.Errorf("with another volume the claim is %s", phase)
		}
		if n := len(c.notes(reasonClaimLost)); n != 1 {
			t.Errorf("%d Events", n)
		}
	})
}

func TestAReleasedVolumeIsReclaimedAsItsPolicySays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.start()
		for name, v := range map[string]*corev1.PersistentVolume{
			"retain":  newVolume("retain", "1Gi", reservedFor("retain")),
			"driver":  newVolume("driver", "1Gi", reservedFor("driver"), reclaimed(corev1.PersistentVolumeReclaimDelete)),
			"local":   newVolume("local", "1Gi", reservedFor("local"), reclaimed(corev1.PersistentVolumeReclaimDelete), localSource),
			"nobody":  newVolume("nobody", "1Gi", reservedFor("nobody"), reclaimed(corev1.PersistentVolumeReclaimRecycle)),
			"strange": newVolume("strange", "1Gi", reservedFor("strange"), reclaimed("Burn")),
		} {
			c.add(v)
			c.add(newClaim(name))
			c.wantBound(name, name)
			c.claims.Remove(claimKey(name))
			pass(time.Second)
		}
		c.wantPhase("retain", corev1.VolumeReleased)
		c.wantPhase("driver", corev1.VolumeReleased)
		c.wantPhase("local", corev1.VolumeFailed)
		c.wantNote(reasonFailedDelete, `error getting deleter volume plugin for volume "local": no volume plugin matched`)
		c.wantPhase("nobody", corev1.VolumeFailed)
		c.wantNote(reasonFailedRecycle, "No recycler plugin found for the volume!")
		c.wantPhase("strange", corev1.VolumeFailed)
		c.wantNote(reasonUnknownPolicy, "Volume has unrecognized PersistentVolumeReclaimPolicy")
		for volume, want := range map[string]string{
			"retain": codeRetained + ": the claim ns/retain is gone, and the reclaim policy Retain keeps the volume with its data (until an administrator deletes the volume, or removes spec.claimRef to have it used again)",
			"local": codeCannotDelete + `: the volume cannot be deleted: error getting deleter volume plugin for volume "local": no volume plugin matched ` +
				"(until an administrator deletes the volume, or changes its reclaim policy)",
			"nobody": codeNoRecycler + ": the claim is gone, and no plugin can empty the volume (until an administrator deletes the volume, or changes its reclaim policy)",
		} {
			c.wantReason(p, volume, want)
		}

		// A claim of the same name is another one.
		c.add(newClaim("retain"))
		c.wantPending("retain")
		c.wantPhase("retain", corev1.VolumeReleased)
		// The remedy that the reason names.
		must(t, fakeapi.Change(c.volumes, object.Key{Name: "retain"}, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }))
		pass(time.Second)
		c.wantBound("retain", "retain")
	})
}

func localSource(v *corev1.PersistentVolume) {
	v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/x"}}
}

func TestAClaimThatTheCacheDoesNotHaveYetKeepsItsVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.claims.HoldWatches(true)
		c.add(newClaim("data", ofClass("fast")))
		c.add(made(c.claim("data"), "1Gi"))
		pass(time.Minute)
		c.wantPhase(volumes.NameFor(string(c.claim("data").UID)), "")
		c.claims.HoldWatches(false)
		pass(time.Second)
		c.wantBound("data", volumes.NameFor(string(c.claim("data").UID)))
	})
}

func TestAClaimThatIsBeingDeletedGetsNoVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.add(newClaim("data", func(claim *corev1.PersistentVolumeClaim) {
			claim.Finalizers = []string{"kubernetes.io/pvc-protection"}
			claim.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}))
		c.add(newVolume("v", "1Gi"))
		c.add(newVolume("reserved", "1Gi", reservedFor("data")))
		c.wantPending("data")
		c.wantPhase("v", corev1.VolumeAvailable)
		c.wantPhase("reserved", corev1.VolumeAvailable)
	})
}

func TestAClaimThatIsDeletedInEachStepOfItsBindingReleasesItsVolume(t *testing.T) {
	for step := range 5 {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.add(newVolume("v", "1Gi", func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeAvailable }))
			c.add(newClaim("data"))
			writes := 0
			c.api.Before(func(q *fakeapi.Request) *metav1.Status {
				if q.Verb == "update" {
					if writes++; writes == step+1 {
						go c.claims.Remove(claimKey("data"))
						time.Sleep(time.Millisecond)
					}
				}
				return nil
			})
			c.start()
			pass(time.Minute)
			if step == 4 {
				c.wantBound("data", "v")
				return
			}
			v := c.volume("v")
			if v.Status.Phase != corev1.VolumeReleased && (v.Spec.ClaimRef != nil || v.Status.Phase != corev1.VolumeAvailable) {
				t.Errorf("step %d: the volume refers to %v and is %s", step, v.Spec.ClaimRef, v.Status.Phase)
			}
		})
	}
}

func TestAReminderComesEachTimeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.add(newClaim("data", ofClass("")))
		writes := func() (n int) {
			for _, q := range c.events.Requests() {
				if q.Verb == "create" || q.Verb == "patch" {
					n++
				}
			}
			return n
		}
		pass(time.Minute)
		first := writes()
		pass(time.Hour)
		if n := writes() - first; first < 2 || n < 2 || n > 12 {
			t.Errorf("%d Events in the first minute, %d in the hour after it", first, n)
		}
	})
}

func TestAVolumeIsRecycledByAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.start()
		c.add(newVolume("v", "100Gi", reservedFor("data"), reclaimed(corev1.PersistentVolumeReclaimRecycle), func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/p"}}
		}))
		c.add(newClaim("data"))
		c.wantBound("data", "v")
		user := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "user"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		}}}
		c.add(user)
		c.claims.Remove(claimKey("data"))
		pass(time.Second)
		c.wantNote(reasonFailedRecycle, "Volume is used by pods: ns/user")
		c.pods.Remove(object.KeyOf(user))
		pass(time.Minute)

		key := object.Key{Namespace: "default", Name: "recycler-for-v"}
		read := func() *corev1.Pod {
			pod, err := fakeapi.Read[*corev1.Pod](c.pods, key)
			if err != nil {
				t.Fatal(err)
			}
			return pod
		}
		pod := read()
		if *pod.Spec.ActiveDeadlineSeconds != 3000 || pod.Spec.Volumes[0].NFS == nil {
			t.Errorf("the Pod is %v", pod.Spec)
		}
		c.wantReason(p, "v", codeRecycler+": the claim is gone, and the Pod default/recycler-for-v empties the volume (until the Pod ends)")
		end := func(phase corev1.PodPhase) {
			must(t, fakeapi.Change(c.pods, key, func(pod *corev1.Pod) { pod.Status.Phase = phase }))
			pass(time.Second)
		}
		end(corev1.PodFailed)
		c.wantPhase("v", corev1.VolumeFailed)
		failsAgain := read()
		end(corev1.PodFailed)
		end(corev1.PodFailed)
		c.wantReason(p, "v", codeRecyclerFailed+": the claim is gone, the Pod that empties the volume has failed, and the next one starts at "+
			time.Now().Add(time.Second).UTC().Format(time.RFC3339)+" (until the time comes)")
		pass(5 * time.Second)
		if read().UID == failsAgain.UID {
			t.Error("the second Pod that failed is still there")
		}
		c.wantNote(reasonFailedRecycle, "Recycle failed: failed to recycle volume: pod failed, pod.Status.Message unknown")
		if again := read(); again.UID == pod.UID {
			t.Error("the Pod that failed is still there")
		}
		p.Stop() // a restart does not begin again
		again := read()
		c.start()
		pass(time.Minute)
		if read().UID != again.UID {
			t.Error("the Pod was replaced")
		}
		end(corev1.PodSucceeded)
		c.wantNote(reasonRecycled, "Volume recycled")
		c.wantPhase("v", corev1.VolumeAvailable)
		if keys := c.pods.Keys(); len(keys) != 0 {
			t.Errorf("there are the Pods %q", keys)
		}
		if ref := c.volume("v").Spec.ClaimRef; ref == nil || ref.UID != "" {
			t.Errorf("the reservation that a user wrote is %v", ref)
		}
	})
}

func TestManyClaimsAndVolumesArePairedOneToOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.volumes.LagWatches(func() time.Duration { return 300 * time.Millisecond })
		c.start()
		const n = 100
		for i := range n {
			must(t, c.claims.Add(newClaim(fmt.Sprint("c", i), ofClass("static"))))
			must(t, c.volumes.Add(newVolume(fmt.Sprint("v", i), "1Gi", inClass("static"))))
		}
		pass(time.Minute)
		var taken []string
		for i := range n {
			claim := c.claim(fmt.Sprint("c", i))
			c.wantBound(claim.Name, claim.Spec.VolumeName)
			taken = append(taken, claim.Spec.VolumeName)
		}
		slices.Sort(taken)
		if len(slices.Compact(taken)) != n {
			t.Error("a volume has two claims")
		}
		// Four writes for each pair, one for the phase of each new volume, and few that were in vain.
		if writes := c.updates(); writes > 5*n+n/2 {
			t.Errorf("%d writes for %d pairs", writes, n)
		}
	})
}

// updates returns how many updates of claims and volumes the server got.
func (c *cluster) updates() (n int) {
	for _, r := range []*fakeapi.Resource{c.claims, c.volumes} {
		for _, q := range r.Requests() {
			if q.Verb == "update" {
				n++
			}
		}
	}
	return n
}
