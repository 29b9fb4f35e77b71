// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package vacprotection

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller/protection"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server in memory, inside of a bubble of synctest, with the controller.
type cluster struct {
	*managertest.Bubble
	t                        *testing.T
	classes, claims, volumes *fakeapi.Resource
	process                  *managertest.Process
}

func start(t *testing.T, objects ...func(*cluster)) *cluster {
	t.Helper()
	b := managertest.NewBubble(t)
	c := &cluster{
		Bubble: b, t: t,
		classes: b.Serve(Descriptor().ActsOn[0]),
		claims:  b.Serve(managertest.Claims, fakeapi.WithStatus()),
		volumes: b.Serve(managertest.Volumes, fakeapi.WithStatus()),
	}
	for _, add := range objects {
		add(c)
	}
	c.process = b.Start(managertest.Making(New, Defaults()))
	return c
}

func (c *cluster) addClass(name string, finalizers ...string) object.Key {
	c.Add(c.classes, &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}, DriverName: "csi.example.com"})
	return object.Key{Name: name}
}

// addClaim adds a claim that wants a class, has one, and is being changed to one; "" is none.
func (c *cluster) addClaim(name, wants, has, becomes string) object.Key {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if wants != "" {
		claim.Spec.VolumeAttributesClassName = &wants
	}
	if has != "" {
		claim.Status.CurrentVolumeAttributesClassName = &has
	}
	if becomes != "" {
		claim.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: becomes, Status: corev1.PersistentVolumeClaimModifyVolumePending}
	}
	c.Add(c.claims, claim)
	return object.KeyOf(claim)
}

func (c *cluster) addVolume(name, class string) object.Key {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	volume.Spec.VolumeAttributesClassName = &class
	c.Add(c.volumes, volume)
	return object.KeyOf(volume)
}

func (c *cluster) want(when string, names ...string) {
	c.t.Helper()
	if got := c.classes.Keys(); !slices.Equal(got, names) {
		c.t.Errorf("%s there are the classes %q, want %q", when, got, names)
	}
}

func TestAClassStaysWhileAClaimOrAVolumeNamesItAndThenGoes(t *testing.T) {
	for name, add := range map[string]func(*cluster) (*fakeapi.Resource, object.Key){
		"a claim that wants it": func(c *cluster) (*fakeapi.Resource, object.Key) {
			return c.claims, c.addClaim("files", "gold", "", "")
		},
		"a claim that has it": func(c *cluster) (*fakeapi.Resource, object.Key) {
			return c.claims, c.addClaim("files", "silver", "gold", "")
		},
		"a claim that is being changed to it": func(c *cluster) (*fakeapi.Resource, object.Key) {
			return c.claims, c.addClaim("files", "silver", "silver", "gold")
		},
		"a volume": func(c *cluster) (*fakeapi.Resource, object.Key) {
			return c.volumes, c.addVolume("disk", "gold")
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := start(t)
				gold := c.addClass("gold", Finalizer)
				users, user := add(c)
				managertest.Settle()
				c.Delete(c.classes, gold)
				c.want("while it is named", "gold")
				c.Delete(users, user)
				c.want("when its last user is gone")
			})
		})
	}
}

// A class may lose its user without the user going.
func TestAClassGoesWhenItsLastClaimNamesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		gold := c.addClass("gold", Finalizer)
		files := c.addClaim("files", "gold", "gold", "")
		managertest.Settle()
		c.Delete(c.classes, gold)
		if err := fakeapi.Change(c.claims, files, func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.VolumeAttributesClassName = new("silver")
		}); err != nil {
			t.Fatal(err)
		}
		managertest.Settle()
		c.want("while the volume still has it", "gold")
		if err := fakeapi.Change(c.claims, files, func(claim *corev1.PersistentVolumeClaim) {
			claim.Status.CurrentVolumeAttributesClassName = new("silver")
		}); err != nil {
			t.Fatal(err)
		}
		managertest.Settle()
		c.want("when the volume has another")
	})
}

func TestAClassThatIsNotRemovedNamesItsUsersInOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		gold := c.addClass("gold", Finalizer)
		disk := c.addVolume("disk", "gold")
		for _, name := range []string{"a", "b", "c"} {
			c.addClaim(name, "gold", "", "")
		}
		managertest.Settle()
		c.Delete(c.classes, gold)
		const users = "PersistentVolumeClaim shop/a, PersistentVolumeClaim shop/b, PersistentVolumeClaim shop/c and 1 more"
		want := []string{"Not deleted yet: it keeps the finalizer kubernetes.io/vac-protection, because it is in use by " + users}
		if notes := c.Notes(protection.InUse); !slices.Equal(notes, want) {
			t.Errorf("the Events say %q, want %q", notes, want)
		}
		c.Delete(c.volumes, disk)
		if notes := c.Notes(protection.InUse); len(notes) != 1 {
			t.Errorf("after one user has gone the Events say %q", notes)
		}
		reason := "InUse: it keeps the finalizer kubernetes.io/vac-protection, because it is in use by PersistentVolumeClaim shop/a, PersistentVolumeClaim shop/b, PersistentVolumeClaim shop/c (until the end of its last user)"
		if reasons := c.process.Reasons("gold"); !slices.Equal(reasons, []string{reason}) {
			t.Errorf("the reasons are %q, want %q", reasons, reason)
		}
	})
}

func TestClassesFromBeforeTheStartAreProtectedAndReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, func(c *cluster) {
			c.addClass("old") // of before the admission
			c.addClass("free", Finalizer)
			if err := fakeapi.Change(c.classes, object.Key{Name: "free"}, func(class *storagev1.VolumeAttributesClass) {
				class.DeletionTimestamp = new(metav1.Now())
			}); err != nil {
				t.Fatal(err)
			}
		})
		c.want("after the start", "old")
		if f := c.classes.Get(object.Key{Name: "old"}).GetFinalizers(); !slices.Equal(f, []string{Finalizer}) {
			t.Errorf("a class without the finalizer has %q now", f)
		}
	})
}

// Only a user that stops to name the class starts a run of the class.
func TestAClaimThatStaysStartsNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		c.addClass("gold", Finalizer)
		managertest.Settle()
		before := c.runs()
		files := c.addClaim("files", "gold", "", "")
		for _, phase := range []corev1.PersistentVolumeClaimPhase{corev1.ClaimPending, corev1.ClaimBound} {
			if err := fakeapi.Change(c.claims, files, func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = phase }); err != nil {
				t.Fatal(err)
			}
			managertest.Settle()
		}
		if n := c.runs() - before; n != 0 {
			t.Errorf("%d runs", n)
		}
		c.Delete(c.claims, files)
		if n := c.runs() - before; n != 1 {
			t.Errorf("%d runs when the claim goes, want 1", n)
		}
	})
}

// runs returns how many runs there were.
func (c *cluster) runs() int { return int(c.process.Runs().Stats().Runs) }

func TestAConflictIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		gold := c.addClass("gold", Finalizer)
		managertest.Settle()
		c.classes.RefuseNext(2, "update", fakeapi.Unavailable(1))
		c.Delete(c.classes, gold)
		c.want("after two refusals")
		silver := c.addClass("silver", Finalizer)
		managertest.Settle()
		c.classes.LoseNext(1, "update")
		c.Delete(c.classes, silver)
		c.want("after an answer that was lost")
	})
}
