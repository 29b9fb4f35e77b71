// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// quiet fails the test if claims or volumes are written in a time in which nothing happens.
func (c *cluster) quiet(when string, d time.Duration) {
	c.t.Helper()
	before := c.updates()
	if pass(d); c.updates() > before {
		c.t.Errorf("%s there are %d writes in %s", when, c.updates()-before, d)
	}
}

// eventWrites returns how many writes of Events the server got.
func (c *cluster) eventWrites() (n int) {
	for _, q := range c.events.Requests() {
		if q.Verb == "create" || q.Verb == "patch" {
			n++
		}
	}
	return n
}

func TestAProvisionerThatNeverAnswersIsNamedAndDelaysNoOtherClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.start()
		c.add(newClass("dead", "dead.example.com", immediate))
		c.add(newClass("fast", "csi.example.com", immediate))
		for i := range 30 {
			c.add(newClaim(fmt.Sprint("dead-", i), ofClass("dead")))
		}
		c.add(newClaim("data", ofClass("fast")))
		c.add(made(c.claim("data"), "1Gi"))
		c.wantBound("data", volumes.NameFor(string(c.claim("data").UID)))
		c.wantPending("dead-0")
		const want = "WaitsForProvisioner: the provisioner dead.example.com was asked for a volume and has not made it (until the provisioner creates the volume)"
		if reasons := p.Reasons("ns/dead-0"); len(reasons) == 0 || reasons[len(reasons)-1] != want {
			t.Errorf("the reasons are %q, want %q", reasons, want)
		}
		if notes := c.notes(reasonExternalProvisioning); !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, "'dead.example.com'") }) {
			t.Errorf("the Events say %q", notes)
		}
		pass(time.Hour)
		before := c.eventWrites()
		c.quiet("while the provisioner does not answer", 10*time.Hour)
		if n := c.eventWrites() - before; n > 30*4*10+30 {
			t.Errorf("%d writes of Events in ten hours for 30 claims, want four an hour for each at most", n)
		}
		// It answers in the end.
		c.add(made(c.claim("dead-0"), "1Gi"))
		c.wantBound("dead-0", volumes.NameFor(string(c.claim("dead-0").UID)))
	})
}

func TestADriverThatNeverDeletesAVolumeIsNamedAndNothingIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.start()
		c.add(newClass("fast", "csi.example.com", immediate))
		c.add(newClaim("data", ofClass("fast")))
		volume := made(c.claim("data"), "1Gi")
		c.add(volume)
		c.wantBound("data", volume.Name)
		c.claims.Remove(claimKey("data"))
		pass(time.Second)
		c.wantPhase(volume.Name, corev1.VolumeReleased)
		const want = "WaitsForDeleter: the claim ns/data is gone, and the driver csi.example.com has not deleted the volume (until the driver deletes the volume)"
		if reasons := p.Reasons(volume.Name); len(reasons) == 0 || reasons[len(reasons)-1] != want {
			t.Errorf("the reasons are %q, want %q", reasons, want)
		}
		c.quiet("while the driver does not delete it", 10*time.Hour)
		c.wantPhase(volume.Name, corev1.VolumeReleased)
	})
}

// The claim is deleted during its binding, and another one has its name at once. The volume of the
// first claim keeps its data from the second one.
func TestAClaimThatIsReplacedInEachStepOfItsBindingGetsAVolumeOfItsOwn(t *testing.T) {
	for step := range 4 {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			available := func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeAvailable }
			c.add(newVolume("v", "1Gi", available))
			c.add(newVolume("w", "2Gi", available))
			c.add(newClaim("data"))
			first := c.claim("data").UID
			writes := 0
			c.api.Before(func(q *fakeapi.Request) *metav1.Status {
				if q.Verb != "update" {
					return nil
				}
				if writes++; writes == step+1 {
					c.claims.Remove(claimKey("data"))
					if err := c.claims.Add(newClaim("data")); err != nil {
						t.Error(err)
					}
				}
				return nil
			})
			c.start()
			pass(time.Minute)
			claim := c.claim("data")
			if claim.UID == first || writes < step+1 {
				t.Fatalf("step %d: the claim was not replaced", step)
			}
			c.wantBound("data", claim.Spec.VolumeName)
			for _, name := range []string{"v", "w"} {
				v := c.volume(name)
				switch ref := v.Spec.ClaimRef; {
				case name == claim.Spec.VolumeName:
				case ref == nil && v.Status.Phase == corev1.VolumeAvailable:
				case ref != nil && ref.UID == first && v.Status.Phase == corev1.VolumeReleased:
				default:
					t.Errorf("step %d: volume %s refers to %v and is %s", step, name, ref, v.Status.Phase)
				}
			}
		})
	}
}

func TestAClaimThatIsDeletedWhileItWaitsLeavesNothingInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var b *binder
		managertest.Run(t, c.api.Config(), managertest.Making(func(h controller.Host, o Options) (controller.Runnable, error) {
			made, runnable, err := build(h, o)
			b = made
			return runnable, err
		}, Defaults()))
		synctest.Wait()
		c.add(newClass("dead", "dead.example.com", immediate))
		for i := range 20 {
			c.add(newClaim(fmt.Sprint("c", i), ofClass([]string{"", "dead", "missing"}[i%3])))
		}
		if n := b.reminders.len(); n != 20 {
			t.Errorf("there are reminders of %d claims, want 20", n)
		}
		for _, key := range c.claims.Keys() {
			namespace, name, _ := strings.Cut(key, "/")
			c.claims.Remove(object.Key{Namespace: namespace, Name: name})
		}
		pass(time.Minute)
		if n := b.reminders.len(); n != 0 {
			t.Errorf("there are reminders of %d claims that are gone", n)
		}
		// Another claim of a name has reminders of its own.
		c.add(newClaim("c0", ofClass("")))
		before := c.eventWrites()
		c.claims.Remove(claimKey("c0"))
		c.add(newClaim("c0", ofClass("")))
		if n := c.eventWrites() - before; n != 1 {
			t.Errorf("%d Events about the claim that replaces another one, want 1", n)
		}
	})
}

func (r *reminders) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.last)
}
