// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controlplane/nodes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var attachmentKey = object.Key{Name: "csi-1"}

// addNode adds a simulated Node.
func (c *cluster) addNode(name string, annotations map[string]string) {
	c.t.Helper()
	c.must(c.nodes.Add(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{nodes.ManagedLabel: "true"}, Annotations: annotations},
	}))
	pass(10 * time.Millisecond)
}

// attachTo adds a VolumeAttachment for the volume of the claim at a node, as the attach-detach
// controller does.
func (c *cluster) attachTo(node string) {
	c.t.Helper()
	c.must(c.attachments.Add(&storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: attachmentKey.Name},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: Driver, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new(c.volume(c.claim()).Name)},
		},
	}))
	pass(10 * time.Millisecond)
}

// attachment returns the VolumeAttachment, or nil.
func (c *cluster) attachment() *storagev1.VolumeAttachment {
	c.t.Helper()
	if !slices.Contains(c.attachments.Keys(), attachmentKey.String()) {
		return nil
	}
	attachment, err := fakeapi.Read[*storagev1.VolumeAttachment](c.attachments, attachmentKey)
	c.must(err)
	return attachment
}

// deleteAttachment deletes the VolumeAttachment, as a client does: finalizers keep it.
func (c *cluster) deleteAttachment() {
	c.t.Helper()
	c.must(client.For[*storagev1.VolumeAttachment](c.client).Delete(c.t.Context(), attachmentKey))
	pass(10 * time.Millisecond)
}

// bound starts a cluster with a Node and a claim that is bound.
func bound(t *testing.T, annotations map[string]string) *cluster {
	t.Helper()
	c := start(t)
	c.addNode("n", nil)
	c.ask(ImmediateClass, annotations)
	c.bind()
	return c
}

func TestAVolumeIsAttachedAndDetachedAsAnExternalAttacherDoesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bound(t, nil)
		driver, err := fakeapi.Read[*storagev1.CSIDriver](c.drivers, object.Key{Name: Driver})
		c.must(err)
		if driver.Spec.AttachRequired == nil || !*driver.Spec.AttachRequired {
			t.Errorf("the CSIDriver is %+v", driver.Spec)
		}
		c.attachTo("n")
		attachment := c.attachment()
		if !attachment.Status.Attached || !slices.Contains(attachment.Finalizers, AttacherFinalizer) || attachment.Annotations[nodeIDAnnotation] != "n" {
			t.Errorf("the attachment is %+v", attachment)
		}
		if volume := c.volume(c.claim()); !slices.Contains(volume.Finalizers, AttacherFinalizer) {
			t.Errorf("the finalizers of the volume are %v", volume.Finalizers)
		}
		c.deleteAttachment()
		if attachment := c.attachment(); attachment != nil {
			t.Errorf("it is not detached: %+v", attachment)
		}
		// A volume that is deleted loses the finalizer.
		c.change(c.volume(c.claim()), func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })
		pass(time.Second)
		if volume := c.volume(c.claim()); volume != nil {
			t.Errorf("the volume stays with the finalizers %v", volume.Finalizers)
		}
	})
}

func TestAVolumeStaysUntilItIsDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bound(t, map[string]string{Prefix + "detach-after": "10s"})
		c.attachTo("n")
		volume := c.volume(c.claim())
		c.must(client.For[*corev1.PersistentVolume](c.client).Delete(t.Context(), object.KeyOf(volume)))
		c.change(volume, func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })
		c.deleteAttachment()
		c.nodes.Remove(object.Key{Name: "n"}) // a detach does not need the Node
		pass(9 * time.Second)
		if c.attachment() == nil || c.volume(c.claim()) == nil {
			t.Error("the volume or its attachment went before it was detached")
		}
		pass(2 * time.Second)
		if c.attachment() != nil || c.volume(c.claim()) != nil {
			t.Errorf("there are %v and %v", c.attachment(), c.volume(c.claim()))
		}
	})
}

func TestADriverThatAttachesLateOrNeverOrFails(t *testing.T) {
	for _, test := range []struct {
		name        string
		annotations map[string]string
		without     time.Duration // it is not attached then
		with        time.Duration // and it is so much later; 0 is never
		failure     string
	}{
		{"late", map[string]string{Prefix + "attach-after": "1m"}, 59 * time.Second, time.Second, ""},
		{"fails at first", map[string]string{Prefix + "attach-fail-first": "2"}, 2 * time.Second, 2 * time.Second, "attempt 2 of 2 that fail (sim.setpoint.io/attach-fail-first)"},
		{"fails", map[string]string{Prefix + "attach": "error"}, time.Hour, 0, "simulated: annotation sim.setpoint.io/attach=error"},
		{"hangs", map[string]string{Prefix + "attach": "never"}, time.Hour, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := bound(t, test.annotations)
			c.attachTo("n")
			pass(test.without)
			attachment := c.attachment()
			if attachment.Status.Attached || !slices.Contains(attachment.Finalizers, AttacherFinalizer) {
				t.Errorf("%s: after %s the attachment is %+v", test.name, test.without, attachment)
			}
			failure := ""
			if e := attachment.Status.AttachError; e != nil {
				failure = e.Message
			}
			if !strings.Contains(failure, test.failure) || (failure == "") != (test.failure == "") {
				t.Errorf("%s: the error is %q", test.name, failure)
			}
			if pass(test.with); test.with == 0 {
				// An annotation that is changed counts at once.
				c.must(fakeapi.Change(c.claims, dataKey, func(claim *corev1.PersistentVolumeClaim) { claim.Annotations[Prefix+"attach"] = "ok" }))
				pass(lastRetry)
			}
			if attachment := c.attachment(); !attachment.Status.Attached || attachment.Status.AttachError != nil {
				t.Errorf("%s: in the end the attachment is %+v", test.name, attachment.Status)
			}
		})
	}
}

func TestADetachThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bound(t, map[string]string{Prefix + "detach-fail-first": "1"})
		c.attachTo("n")
		c.deleteAttachment()
		attachment := c.attachment()
		if attachment == nil || !attachment.Status.Attached || attachment.Status.DetachError == nil {
			t.Fatalf("the attachment is %+v", attachment)
		}
		if pass(time.Second); c.attachment() != nil {
			t.Errorf("the attachment is still %+v", c.attachment())
		}
	})
}

func TestANodeWithoutTheDriverIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bound(t, nil)
		c.must(c.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}))
		c.attachTo("other")
		if e := c.attachment().Status.AttachError; e == nil || !strings.Contains(e.Message, `"other" not found`) {
			t.Errorf("the error is %v", e)
		}
		c.must(c.csiNodes.Add(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "other"}}))
		pass(lastRetry)
		if e := c.attachment().Status.AttachError; e == nil || e.Message != "CSINode other does not contain driver sim.setpoint.io" {
			t.Errorf("the error is %v", e)
		}
	})
}

func TestOtherAttachersAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bound(t, nil)
		c.must(c.attachments.Add(&storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: attachmentKey.Name},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "disk.example.com", NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv")},
			},
		}))
		pass(time.Minute)
		if a := c.attachment(); a.Status.Attached || a.Status.AttachError != nil || len(a.Finalizers) > 0 {
			t.Errorf("the attachment is %+v", a)
		}
	})
}

func TestEachSimulatedNodeHasACSINode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		c.must(c.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}))
		c.addNode("n", map[string]string{AttachLimit: "3"})
		c.addNode("m", map[string]string{AttachLimit: "many"})
		if !c.ready.Load() {
			t.Error("the storage is not ready")
		}
		if keys := c.csiNodes.Keys(); len(keys) != 2 {
			t.Errorf("there are CSINodes of %v", keys)
		}
		limit := func(node string) *storagev1.VolumeNodeResources {
			csiNode, err := fakeapi.Read[*storagev1.CSINode](c.csiNodes, object.Key{Name: node})
			c.must(err)
			return csiNode.Spec.Drivers[0].Allocatable
		}
		if l := limit("n"); l == nil || *l.Count != 3 || limit("m") != nil {
			t.Errorf("the limits are %v and %v", l, limit("m"))
		}
		if notes := c.notes(reasonInvalidKnob); !slices.Equal(notes, []string{`annotation sim.setpoint.io/attach-limit is ignored: "many" is not a number of volumes`}) {
			t.Errorf("the Events are %q", notes)
		}
		c.must(fakeapi.Change(c.nodes, object.Key{Name: "n"}, func(n *corev1.Node) { n.Annotations[AttachLimit] = "4" }))
		pass(time.Second)
		if l := limit("n"); l == nil || *l.Count != 4 {
			t.Errorf("the limit is %v", l)
		}
		c.nodes.Remove(object.Key{Name: "n"})
		pass(time.Second)
		if keys := c.csiNodes.Keys(); len(keys) != 1 {
			t.Errorf("there are CSINodes of %v", keys)
		}
	})
}

func TestDriversOfOthersStayInACSINode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		c.addNode("n", nil)
		other := storagev1.CSINodeDriver{Name: "other.example.com", NodeID: "n"}
		drivers := func() (names []string) {
			csiNode, err := fakeapi.Read[*storagev1.CSINode](c.csiNodes, object.Key{Name: "n"})
			c.must(err)
			for _, d := range csiNode.Spec.Drivers {
				names = append(names, d.Name)
			}
			return names
		}
		c.must(fakeapi.Change(c.csiNodes, object.Key{Name: "n"}, func(n *storagev1.CSINode) { n.Spec.Drivers = []storagev1.CSINodeDriver{other} }))
		pass(time.Second)
		if names := drivers(); !slices.Equal(names, []string{other.Name, Driver}) {
			t.Errorf("the drivers are %q", names)
		}
		c.nodes.Remove(object.Key{Name: "n"})
		pass(time.Second)
		if names := drivers(); !slices.Equal(names, []string{other.Name}) {
			t.Errorf("the drivers of a Node that is gone are %q", names)
		}
	})
}
