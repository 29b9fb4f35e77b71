// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server with the simulated driver, inside of a bubble of synctest. No binder runs.
type cluster struct {
	t                                                            *testing.T
	claims, volumes, classes, attributes, attachments, nodes, ev *fakeapi.Resource
	drivers, csiNodes                                            *fakeapi.Resource
	client                                                       *client.Client
	ready                                                        atomic.Bool
}

func start(t *testing.T) *cluster {
	t.Helper()
	api := fakeapi.New()
	kind := func(group, plural, kind string, options ...fakeapi.Option) *fakeapi.Resource {
		return api.Serve(object.Resource{Group: group, Version: "v1", Plural: plural, Kind: kind}, options...)
	}
	c := &cluster{
		t:           t,
		claims:      api.Serve(object.Resource{Version: "v1", Plural: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true}, fakeapi.WithStatus()),
		volumes:     kind("", "persistentvolumes", "PersistentVolume", fakeapi.WithStatus()),
		nodes:       kind("", "nodes", "Node", fakeapi.WithStatus()),
		classes:     kind("storage.k8s.io", "storageclasses", "StorageClass"),
		attributes:  kind("storage.k8s.io", "volumeattributesclasses", "VolumeAttributesClass"),
		attachments: kind("storage.k8s.io", "volumeattachments", "VolumeAttachment", fakeapi.WithStatus()),
		drivers:     kind("storage.k8s.io", "csidrivers", "CSIDriver"),
		csiNodes:    kind("storage.k8s.io", "csinodes", "CSINode"),
		ev:          api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}),
	}
	var err error
	c.client, err = client.New(api.Config())
	c.must(err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{Config: api.Config(), OnReady: func() { c.ready.Store(true) }, Logger: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	pass(time.Second)
	return c
}

// pass lets time pass, and the driver do what is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var dataKey = object.Key{Namespace: "ns", Name: "data"}

// ask adds a claim of 1Gi for which a binder has asked the driver, and returns it.
func (c *cluster) ask(class string, annotations map[string]string) *corev1.PersistentVolumeClaim {
	c.t.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: dataKey.Namespace, Name: dataKey.Name, Annotations: map[string]string{volumes.StorageProvisioner: Driver}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	maps.Copy(claim.Annotations, annotations)
	c.must(c.claims.Add(claim))
	pass(10 * time.Millisecond)
	return c.claim()
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) claim() *corev1.PersistentVolumeClaim {
	c.t.Helper()
	claim, err := fakeapi.Read[*corev1.PersistentVolumeClaim](c.claims, dataKey)
	c.must(err)
	return claim
}

// volume returns the volume of a claim, or nil.
func (c *cluster) volume(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	c.t.Helper()
	key := object.Key{Name: volumes.NameFor(string(claim.UID))}
	if !slices.Contains(c.volumes.Keys(), key.String()) {
		return nil
	}
	volume, err := fakeapi.Read[*corev1.PersistentVolume](c.volumes, key)
	c.must(err)
	return volume
}

// change changes the volume of a claim.
func (c *cluster) change(volume *corev1.PersistentVolume, change func(*corev1.PersistentVolume)) {
	c.t.Helper()
	c.must(fakeapi.Change(c.volumes, object.KeyOf(volume), change))
	pass(10 * time.Millisecond)
}

// bind binds the claim to its volume, as a binder does.
func (c *cluster) bind() (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	c.t.Helper()
	volume := c.volume(c.claim())
	c.must(fakeapi.Change(c.claims, dataKey, func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.VolumeName = volume.Name
		claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, volume.Spec.Capacity
	}))
	pass(10 * time.Millisecond)
	return c.claim(), volume
}

// notes returns what the Events of a reason say.
func (c *cluster) notes(reason string) (all []string) {
	c.t.Helper()
	pass(time.Second)
	list, err := fakeapi.Objects[*eventsv1.Event](c.ev)
	c.must(err)
	for _, e := range list {
		if e.Reason == reason {
			all = append(all, e.Note)
		}
	}
	return all
}

func TestTheClassesAreMadeOnceAndOneIsTheDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		all, err := fakeapi.Objects[*storagev1.StorageClass](c.classes)
		c.must(err)
		if class := volumes.DefaultClass(all); len(all) != 2 || class == nil || class.Name != DefaultClass || !volumes.WaitsForConsumer(class) {
			t.Errorf("the classes are %v", all)
		}
	})
}

func TestAVolumeIsMadeForAClaimAndDeletedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		volume := c.volume(c.ask(ImmediateClass, nil))
		if volume == nil || volume.Annotations[volumes.ProvisionedBy] != Driver || volume.Spec.ClaimRef.UID != c.claim().UID ||
			!slices.Contains(volume.Finalizers, volumes.ExternalFinalizer) || volume.Spec.CSI.Driver != Driver {
			t.Fatalf("the volume is %+v", volume)
		}
		// A volume that is attached stays.
		c.must(c.attachments.Add(&storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec:       storagev1.VolumeAttachmentSpec{Attacher: Driver, NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume.Name}},
		}))
		pass(10 * time.Millisecond) // the driver sees the attachment before the volume is released
		c.change(volume, func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })
		if notes := c.notes(reasonNotDeleted); c.volume(c.claim()) == nil || !slices.Contains(notes, "persistentvolume "+volume.Name+" is still attached to node n") {
			t.Errorf("the Events are %q", notes)
		}
		c.attachments.Remove(object.Key{Name: "a"})
		pass(time.Second)
		if volume := c.volume(c.claim()); volume != nil {
			t.Errorf("the volume stays: %+v", volume)
		}
	})
}

func TestAClaimThatWaitsForItsConsumerGetsAVolumeWhereThatIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		c.must(c.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelTopologyZone: "z"}}}))
		mode := storagev1.VolumeBindingWaitForFirstConsumer
		c.must(c.classes.Add(&storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: "zonal"}, Provisioner: Driver, VolumeBindingMode: &mode, Parameters: map[string]string{topologyParameter: "zone"},
		}))
		if c.volume(c.ask("zonal", nil)) != nil {
			t.Fatal("a volume was made before the claim had a Node")
		}
		c.must(fakeapi.Change(c.claims, dataKey, func(claim *corev1.PersistentVolumeClaim) { claim.Annotations[volumes.SelectedNode] = "n" }))
		pass(time.Second)
		volume := c.volume(c.claim())
		if volume == nil || volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0] != "z" {
			t.Errorf("the volume is %+v", volume)
		}
	})
}

func TestADriverThatIsSlowFailsOrHangs(t *testing.T) {
	for _, test := range []struct {
		name        string
		annotations map[string]string
		without     time.Duration // no volume until then
		with        time.Duration // a volume at this time; 0 is never
		note        string
	}{
		{"slow", map[string]string{Prefix + "provision-after": "1m"}, 59 * time.Second, time.Minute, ""},
		{"fails at first", map[string]string{Prefix + "provision-fail-first": "2"}, 2 * time.Second, 4 * time.Second, "attempt 2 of 2 that fail"},
		{"fails", map[string]string{Prefix + "provision": "error"}, time.Hour, 0, "simulated: annotation sim.setpoint.io/provision=error"},
		{"hangs", map[string]string{Prefix + "provision": "never"}, time.Hour, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := start(t)
			claim := c.ask(ImmediateClass, test.annotations)
			pass(test.without)
			if c.volume(claim) != nil {
				t.Errorf("%s: there is a volume after %s", test.name, test.without)
			}
			notes := c.notes(reasonNotMade)
			if pass(test.with); test.with > 0 && c.volume(claim) == nil {
				t.Errorf("%s: there is no volume after %s", test.name, test.with)
			}
			if test.note != "" && !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, test.note) }) {
				t.Errorf("%s: the Events are %q", test.name, notes)
			}
		})
	}
}

func TestAClassGivesNoMoreThanItsCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		mode := storagev1.VolumeBindingImmediate
		c.must(c.classes.Add(&storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: "small"}, Provisioner: Driver, VolumeBindingMode: &mode, Parameters: map[string]string{capacityParameter: "1536Mi"},
		}))
		first := c.ask("small", nil)
		if c.volume(first) == nil {
			t.Fatal("the first claim has no volume")
		}
		second := first.DeepCopy()
		second.Name, second.UID, second.ResourceVersion = "second", "", ""
		c.must(c.claims.Add(second))
		pass(time.Second)
		if n := len(c.volumes.Keys()); n != 1 || len(c.notes(reasonNotMade)) == 0 {
			t.Errorf("%d volumes, and the Events %q", n, c.notes(reasonNotMade))
		}
		c.change(c.volume(first), func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })
		pass(time.Minute)
		if n := len(c.volumes.Keys()); n != 1 || c.volume(first) != nil {
			t.Errorf("%d volumes after one was deleted", n)
		}
	})
}

func TestAVolumeGrowsAndGetsOtherAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		c.ask(ImmediateClass, map[string]string{Prefix + "resize-after": "10s"})
		c.bind()
		large := resource.MustParse("3Gi")
		c.must(fakeapi.Change(c.claims, dataKey, func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.Resources.Requests[corev1.ResourceStorage] = large
			claim.Spec.VolumeAttributesClassName = new("gold")
		}))
		pass(5 * time.Second)
		if has := c.claim().Status.Capacity.Storage(); has.Cmp(large) == 0 {
			t.Error("the volume has grown too early")
		}
		pass(10 * time.Second)
		claim := c.claim()
		if volume := c.volume(claim); claim.Status.Capacity.Storage().Cmp(large) != 0 || volume.Spec.Capacity.Storage().Cmp(large) != 0 {
			t.Errorf("the capacity is %v and %v", claim.Status.Capacity, volume.Spec.Capacity)
		}
		if s := claim.Status.ModifyVolumeStatus; s == nil || s.Status != corev1.PersistentVolumeClaimModifyVolumePending {
			t.Errorf("without the class, the status is %v", s)
		}
		c.must(c.attributes.Add(&storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, DriverName: Driver}))
		pass(time.Second)
		claim = c.claim()
		if claim.Status.ModifyVolumeStatus != nil || volumes.AttributesOf(claim.Status.CurrentVolumeAttributesClassName) != "gold" ||
			volumes.AttributesOf(c.volume(claim).Spec.VolumeAttributesClassName) != "gold" {
			t.Errorf("the status is %+v", claim.Status)
		}
	})
}

func TestAnAnnotationThatMeansNothingIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		claim := c.ask(ImmediateClass, map[string]string{Prefix + "provision-after": "soon", Prefix + "prevision": "x"})
		if c.volume(claim) == nil {
			t.Error("no volume was made")
		}
		notes := strings.Join(c.notes(reasonInvalidKnob), "\n")
		if !strings.Contains(notes, `sim.setpoint.io/provision-after is ignored: "soon" is not a duration`) || !strings.Contains(notes, "sim.setpoint.io/prevision is ignored") {
			t.Errorf("the Events are %s", notes)
		}
	})
}
