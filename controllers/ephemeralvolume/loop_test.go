// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ephemeralvolume

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server in memory, inside of a bubble of synctest, with the controller.
type cluster struct {
	*managertest.Bubble
	t            *testing.T
	pods, claims *fakeapi.Resource
	process      *managertest.Process
	metrics      prometheus.Collector
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	b := managertest.NewBubble(t)
	return &cluster{
		Bubble: b, t: t,
		pods:   b.Serve(managertest.Pods, fakeapi.WithStatus()),
		claims: b.Serve(managertest.Claims, fakeapi.WithStatus()),
	}
}

func (c *cluster) start() *cluster {
	c.t.Helper()
	c.process = c.Start(managertest.Making(func(h controller.Host, o Options) (*Controller, error) {
		made, err := New(h, o)
		c.metrics = made
		return made, err
	}, Defaults()))
	return c
}

// addPod adds a Pod with ephemeral volumes.
func (c *cluster) addPod(name string, volumes ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid-of-pod"}}
	for _, v := range volumes {
		template := &corev1.PersistentVolumeClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}, Annotations: map[string]string{"note": v}},
			Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new("fast")},
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: v, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template}}})
	}
	c.Add(c.pods, pod)
	managertest.Settle()
	return pod
}

func (c *cluster) addClaim(name string, owners ...metav1.OwnerReference) object.Key {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: owners}}
	c.Add(c.claims, claim)
	return object.KeyOf(claim)
}

func (c *cluster) want(when string, names ...string) {
	c.t.Helper()
	if got := c.claims.Keys(); !slices.Equal(got, names) {
		c.t.Errorf("%s there are the claims %q, want %q", when, got, names)
	}
}

// scrape returns the metrics of the controller.
func (c *cluster) scrape() map[string]float64 {
	c.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c.metrics)
	families, err := registry.Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		all[family.GetName()] = family.GetMetric()[0].GetCounter().GetValue()
	}
	return all
}

func (c *cluster) wantNotes(notes ...string) {
	c.t.Helper()
	if got := c.Notes(failed); !slices.Equal(got, notes) {
		c.t.Errorf("the Events say %q, want %q", got, notes)
	}
}

func TestAPodGetsAClaimForEachEphemeralVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t).start()
		c.addPod("plain")
		pod := c.addPod("web", "cache", "data")
		c.want("after the creation", "ns/web-cache", "ns/web-data")
		claim, err := fakeapi.Read[*corev1.PersistentVolumeClaim](c.claims, object.Key{Namespace: "ns", Name: "web-cache"})
		if err != nil {
			t.Fatal(err)
		}
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: pod.UID, Controller: new(true), BlockOwnerDeletion: new(true)}
		if len(claim.OwnerReferences) != 1 || claim.OwnerReferences[0].String() != owner.String() {
			t.Errorf("the owners are %v, want %v", claim.OwnerReferences, owner)
		}
		if claim.Labels["app"] != "web" || claim.Annotations["note"] != "cache" || *claim.Spec.StorageClassName != "fast" || claim.Spec.AccessModes[0] != corev1.ReadWriteOnce {
			t.Errorf("the claim is %+v", claim)
		}
		c.wantNotes()
		if got := c.scrape(); got["ephemeral_volume_controller_create_total"] != 2 || got["ephemeral_volume_controller_create_failures_total"] != 0 || len(got) != 2 {
			t.Errorf("the metrics are %v", got)
		}
	})
}

func TestAClaimThatIsDeletedIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t).start()
		pod := c.addPod("web", "cache")
		claim := object.Key{Namespace: "ns", Name: "web-cache"}
		c.Delete(c.claims, claim)
		c.want("after the deletion", "ns/web-cache")
		if err := fakeapi.Change(c.pods, object.KeyOf(pod), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }); err != nil {
			t.Fatal(err)
		}
		managertest.Settle()
		c.Delete(c.claims, claim)
		c.want("when the Pod has ended")
	})
}

// The data of a claim that the Pod does not own is not for the Pod.
func TestAClaimOfAnotherOwnerIsRefused(t *testing.T) {
	for name, owners := range map[string][]metav1.OwnerReference{
		"nobody":         nil,
		"an earlier Pod": {{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "earlier", Controller: new(true)}},
		"no controller":  {{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "uid-of-pod"}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				claim := c.addClaim("web-cache", owners...)
				c.start()
				c.addPod("web", "cache", "data")
				c.want("beside that claim", "ns/web-cache", "ns/web-data")
				c.wantNotes("ephemeral volume cache: PVC ns/web-cache was not created for pod ns/web (pod is not owner)")
				reason := "ClaimOfAnother: the claim of the ephemeral volume cache is not created: web-cache exists, and the Pod does not own it (until that claim is deleted)"
				if got := c.process.Reasons("ns/web"); !slices.Equal(got, []string{reason}) {
					t.Errorf("the reasons are %q, want %q", got, reason)
				}
				c.Delete(c.claims, claim)
				if owner := metav1.GetControllerOf(c.claims.Get(claim)); owner == nil || owner.UID != "uid-of-pod" {
					t.Errorf("after its deletion the owner is %v", owner)
				}
				if got := c.process.Reasons("ns/web"); len(got) > 0 {
					t.Errorf("the reasons are still %q", got)
				}
			})
		})
	}
}

func TestAClaimThatTheCacheDoesNotShowIsReadFromTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t).start()
		c.claims.HoldWatches(true)
		c.addClaim("web-cache")
		c.addPod("web", "cache")
		c.wantNotes("ephemeral volume cache: PVC ns/web-cache was not created for pod ns/web (pod is not owner)")
	})
}

func TestACreateIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t).start()
		c.claims.RefuseNext(1, "create", fakeapi.Forbidden("persistentvolumeclaims"))
		c.addPod("refused", "cache")
		c.want("after a refusal", "ns/refused-cache")
		if notes := c.Notes(failed); len(notes) != 1 || !strings.HasPrefix(notes[0], "ephemeral volume cache: create PVC refused-cache: ") {
			t.Errorf("the Events say %q", notes)
		}
		c.claims.LoseNext(1, "create")
		c.addPod("lost", "cache")
		c.want("after an answer that was lost", "ns/lost-cache", "ns/refused-cache")
	})
}

func TestAPodThatIsBeingDeletedGetsNoClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		pod := c.addPod("web", "cache")
		if err := fakeapi.Change(c.pods, object.KeyOf(pod), func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) }); err != nil {
			t.Fatal(err)
		}
		c.start()
		c.want("after the start")
	})
}

// Changes of a Pod's status, and of a claim's, start no run.
func TestOnlyWhatMayLackAClaimStartsARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t).start()
		pod := c.addPod("web", "cache")
		before := c.process.Runs().Stats().Runs
		if err := fakeapi.Change(c.pods, object.KeyOf(pod), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }); err != nil {
			t.Fatal(err)
		}
		if err := fakeapi.Change(c.claims, object.Key{Namespace: "ns", Name: "web-cache"}, func(claim *corev1.PersistentVolumeClaim) {
			claim.Status.Phase = corev1.ClaimBound
		}); err != nil {
			t.Fatal(err)
		}
		c.addPod("plain")
		if n := c.process.Runs().Stats().Runs - before; n != 0 {
			t.Errorf("%d runs", n)
		}
	})
}
