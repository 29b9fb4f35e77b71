// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestAVolumeFollowsItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.addVolume("data")
		c.start()
		c.wantAt("without a Pod", "data")
		c.addPod("web-0", "a", "data")
		pass(time.Second)
		c.wantAt("with a Pod", "data", "a")
		c.wantMounted("with a Pod", "data", "a")
		c.wantNote(reasonAttached, "web-0", `AttachVolume.Attach succeeded for volume "pv-data" `)

		c.addPod("web-1", "b", "data")
		pass(time.Second)
		c.wantAt("with a Pod at another node", "data", "a")
		c.wantNote(reasonFailedAttach, "web-1", `Waiting for detach for volume "pv-data" Volume is already used by pod(s) web-0`)

		c.removePod("web-0")
		pass(time.Second)
		c.wantAt("after the first Pod", "data", "b")
		c.wantMounted("after the first Pod", "data", "b")
		c.removePod("web-1")
		pass(time.Second)
		c.wantAt("after all Pods", "data")
		pass(2 * time.Minute)
		for _, node := range []string{"a", "b"} {
			n, err := fakeapi.Read[*corev1.Node](c.nodes, object.Key{Name: node})
			if err != nil || len(n.Status.VolumesAttached) != 0 {
				t.Errorf("the status of node %s names %v, %v", node, n.Status.VolumesAttached, err)
			}
		}
	})
}

func TestAVolumeForManyNodesIsAttachedToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.addVolume("shared", corev1.ReadWriteMany)
		c.start()
		c.addPod("web-0", "a", "shared")
		c.addPod("web-1", "b", "shared")
		pass(time.Second)
		c.wantAt("with two Pods", "shared", "a", "b")
		c.removePod("web-0")
		pass(time.Second)
		c.wantAt("with one Pod", "shared", "b")
	})
}

func TestANodeThatIsNotReadyKeepsItsVolumesForSixMinutes(t *testing.T) {
	for _, c := range []struct {
		name       string
		sends      func(*cluster)
		after      time.Duration
		why, until string
	}{
		{"by time", func(*cluster) {}, 6 * time.Minute, "is not ready and has the volume pv-data in use",
			"the kubelet unmounts the volume, or the node gets the taint node.kubernetes.io/out-of-service"},
		{"out of service", func(c *cluster) {
			c.changeNode("a", func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
			})
		}, 0, "", ""},
		{"gone", func(c *cluster) { c.nodes.Remove(object.Key{Name: "a"}) }, 6 * time.Minute, "does not exist any more, and had the volume pv-data in use",
			"the node is back, and its kubelet unmounts the volume"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newCluster(t, "a", "b")
				k.addVolume("data")
				p := k.start()
				k.addPod("web-0", "a", "data")
				pass(time.Second)
				k.fail("a")
				pass(7 * time.Minute)
				k.wantAt("while the Pod is there", "data", "a")
				k.removePod("web-0")
				k.addPod("web-1", "b", "data")
				pass(time.Second)
				k.with(func() { k.force = true })
				c.sends(k)
				if c.after > 0 {
					pass(c.after - 10*time.Second)
					k.wantAt("before the time", "data", "a")
					if notes := k.notes(reasonWaits, "web-1"); len(notes) == 0 || !strings.Contains(notes[0], "it is detached by force at 2000-01-01T00:13:0") {
						t.Errorf("the Events say %q", notes)
					}
					k.wantReason(p, "data", fmt.Sprintf(codeNotReady+": Pod ns/web-1: node a %s; it is detached by force at 2000-01-01T00:13:02Z (until %s)", c.why, c.until))
					pass(15 * time.Second)
				}
				pass(time.Second)
				k.wantAt("after that", "data", "b")
			})
		})
	}
}

// No run for the volume comes between its mounting and the end of the Node object.
func TestAVolumeThatWasMountedJustBeforeItsNodeObjectWentCountsAsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := attachedCluster(t, "a")
		c.wantMounted("with a Pod", "data", "a")
		c.nodes.Remove(object.Key{Name: "a"})
		pass(time.Second)
		c.removePod("web-0")
		pass(5 * time.Minute)
		c.wantAt("while the kubelet may have it mounted", "data", "a")
		c.with(func() { c.force, c.silent["a"] = true, true })
		pass(2 * time.Minute)
		c.wantAt("after the time", "data")
	})
}

// At a node that is ready, the kubelet says that it has the volume in use: see TestAVolumeWhoseObjectIsGoneIsDetachedAfterItsPod.
func TestAVolumeWhoseObjectIsGoneStaysWithItsPodAtASilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := attachedCluster(t, "a")
		c.fail("a")
		c.pvs.Remove(object.Key{Name: "pv-data"})
		pass(10 * time.Minute)
		c.wantAt("after ten minutes without the PersistentVolume", "data", "a")
		p.Kill()
		c.start()
		pass(10 * time.Minute)
		c.wantAt("ten minutes after a new process", "data", "a")
		c.with(func() { c.force = true })
		c.removePod("web-0")
		pass(5 * time.Minute)
		c.wantAt("while the kubelet may unmount it", "data", "a")
		pass(time.Minute + 2*time.Second)
		c.wantAt("after the Pod", "data")
	})
}

func TestANodeThatIsReadyAgainIsNotForced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := attachedCluster(t, "a", "b")
		c.fail("a")
		c.removePod("web-0")
		pass(5 * time.Minute)
		// The kubelet is back and still has the volume mounted. The watch does not show it.
		c.nodes.HoldWatches(true)
		c.changeNode("a", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionTrue })
		pass(2 * time.Minute)
		c.wantAt("with a node that is ready on the server", "data", "a")
		c.nodes.HoldWatches(false)
		pass(time.Minute)
		c.wantAt("when the watch shows it", "data", "a")
		c.with(func() { delete(c.silent, "a") })
		pass(time.Minute)
		c.wantAt("after the kubelet has unmounted it", "data")
	})
}

func TestATaintThatIsGoneOnTheServerForcesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := attachedCluster(t, "a")
		c.fail("a")
		c.changeNode("a", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService}} })
		pass(time.Second)
		c.nodes.HoldWatches(true)
		c.changeNode("a", func(n *corev1.Node) { n.Spec.Taints = nil })
		c.removePod("web-0")
		pass(time.Minute)
		c.wantAt("after the taint", "data", "a")
	})
}

func TestADriverThatFailsIsWaitedForWithGrowingDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a")
		c.addVolume("data")
		c.with(func() { c.fails = 2 })
		c.start()
		c.addPod("web-0", "a", "data")
		pass(10 * time.Second)
		c.wantMounted("after two failures", "data", "a")
		notes := c.notes(reasonFailedAttach, "web-0")
		if len(notes) == 0 || notes[0] != `AttachVolume.Attach failed for volume "pv-data" : no such disk, try 1` {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestADriverThatNeverAnswersIsSaidAndItsVolumeCanLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.addVolume("data")
		c.with(func() { c.hangs = true })
		p := c.start()
		c.addPod("web-0", "a", "data")
		pass(time.Second)
		c.wantAt("with a driver that hangs", "data", "a")
		if reasons := p.Reasons(string(unique("data"))); len(reasons) != 1 || !strings.HasPrefix(reasons[0], codeAttaching) {
			t.Errorf("the reasons are %q", reasons)
		}
		pass(2 * time.Minute)
		notes := c.notes(reasonFailedAttach, "web-0")
		if len(notes) != 1 || notes[0] != `AttachVolume.Attach failed for volume "pv-data" : timed out waiting for external-attacher of disk.example.com CSI driver to attach volume h-data` {
			t.Errorf("the Events say %q", notes)
		}
		// The Pod goes, and another one comes at another node.
		c.removePod("web-0")
		c.addPod("web-1", "b", "data")
		pass(2 * time.Minute)
		c.wantAt("while the driver does not let it go", "data", "a")
		c.with(func() { c.hangs = false })
		pass(time.Second)
		c.wantAt("after the driver", "data", "b")
		c.wantMounted("after the driver", "data", "b")
	})
}

func TestADetachThatFailsIsSaidToThePodThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := attachedCluster(t, "a", "b")
		c.with(func() { c.hangs = true })
		c.removePod("web-0")
		c.addPod("web-1", "b", "data")
		pass(time.Second)
		c.must(fakeapi.Change(c.attachments, object.Key{Name: attachmentOf(unique("data"), "a")}, func(va *storagev1.VolumeAttachment) {
			va.Status.DetachError = &storagev1.VolumeError{Message: "the disk is busy"}
		}))
		c.wantNote(reasonFailedDetach, "web-1", `DetachVolume.Detach failed for volume "pv-data" on node a : the disk is busy`)
		c.wantReason(p, "data", codeDetachFails+": Pod ns/web-1: the driver disk.example.com detaches the volume pv-data from node a, and has failed: the disk is busy (until the driver succeeds)")
	})
}

// The driver of a machine that is gone may wait for it. Its users learn which driver that is.
func TestAPodThatWaitsForANodeThatIsGoneHasAnEventThatNamesTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.addVolume("data")
		c.start()
		c.addPod("web-0", "a", "data")
		pass(2 * time.Minute)
		c.with(func() { c.hangs, c.force, c.silent["a"] = true, true, true })
		c.nodes.Remove(object.Key{Name: "a"})
		c.removePod("web-0")
		c.addPod("web-1", "b", "data")
		pass(5 * time.Minute)
		c.wantNote(reasonWaits, "web-1", `Volume "pv-data" is in use of node a, which does not exist any more: it is detached by force at 2000-01-01T00:08:01Z, `+
			`or at once if the node gets the taint node.kubernetes.io/out-of-service`)
		c.wantNote(reasonFailedDetach, "web-1")
		pass(time.Hour)
		c.wantNote(reasonFailedDetach, "web-1", `Volume "pv-data" is being detached from node a, which does not exist any more: the driver disk.example.com may wait for it. `+
			`If the machine is gone, see the logs of the driver's external-attacher`)
		c.wantAt("while the driver waits", "data", "a")
		c.with(func() { c.hangs = false })
		pass(time.Second)
		c.wantMounted("after the driver has detached it", "data", "a", "b") // the machine that is gone is the first
	})
}

func TestARestartLosesAndRepeatsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.addVolume("kept")
		c.addVolume("left")
		p := c.start()
		c.addPod("web-0", "a", "kept")
		c.addPod("web-1", "a", "left")
		pass(time.Second)
		p.Stop()
		c.removePod("web-1")
		pass(time.Second)
		c.api.Forget()
		c.start()
		c.wantAt("after the restart", "kept", "a")
		c.wantAt("after the restart", "left")
		for _, call := range c.attachments.Calls() {
			if !strings.HasPrefix(call, "delete ") || !strings.HasSuffix(call, attachmentOf(unique("left"), "a")) {
				t.Errorf("it calls %s", call)
			}
		}
	})
}

func TestAnAttachmentOfADriverThatNoLongerAttachesGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := attachedCluster(t, "a")
		c.with(func() { c.silent["a"] = true })
		c.must(c.drivers.Add(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driverName}, Spec: storagev1.CSIDriverSpec{AttachRequired: new(false)}}))
		pass(time.Minute)
		c.wantAt("while it is mounted", "data", "a")
		c.with(func() { delete(c.silent, "a") })
		c.removePod("web-0")
		pass(time.Second)
		c.wantAt("after the Pod", "data")
		c.addPod("web-1", "a", "data")
		pass(time.Second)
		c.wantAt("with another Pod", "data")
	})
}

func TestAttachmentsOfOthersAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a")
		c.addVolume("data")
		c.must(c.attachments.Add(&storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "by-hand"},
			Spec:       storagev1.VolumeAttachmentSpec{Attacher: driverName, NodeName: "a", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv-data")}},
		}))
		c.start()
		pass(2 * time.Minute)
		c.wantAt("after a while", "data", "a")
	})
}

func TestALostAnswerAndARefusalAreSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a")
		c.addVolume("data")
		c.start()
		c.attachments.LoseNext(1, "create")
		c.attachments.RefuseNext(1, "create", fakeapi.Forbidden("volumeattachments"))
		c.addPod("web-0", "a", "data")
		pass(time.Minute)
		c.wantMounted("after a lost create", "data", "a")
		c.attachments.LoseNext(1, "delete")
		c.nodes.RefuseNext(2, "patch", fakeapi.Unavailable(0))
		c.nodes.RefuseNext(2, "get", fakeapi.Unavailable(0))
		c.removePod("web-0")
		pass(time.Minute)
		c.wantAt("after a lost delete", "data")
	})
}

func TestANodeThatWasCreatedAgainGetsItsStatusBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := attachedCluster(t, "a")
		c.nodes.Remove(object.Key{Name: "a"})
		pass(time.Second)
		c.wantAt("without the node", "data", "a")
		c.addNode("a")
		pass(time.Second)
		n, err := fakeapi.Read[*corev1.Node](c.nodes, object.Key{Name: "a"})
		if err != nil || !reports(n, unique("data")) {
			t.Errorf("the status names %v, %v", n.Status.VolumesAttached, err)
		}
	})
}

func TestAVolumeWithoutAnAttacherIsAttachedByTheStatusAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.addVolume("data")
		c.must(fakeapi.Change(c.pvs, object.Key{Name: "pv-data"}, func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.x", Lun: 3}}
		}))
		names := func(node string) string {
			n, err := fakeapi.Read[*corev1.Node](c.nodes, object.Key{Name: node})
			c.must(err)
			if len(n.Status.VolumesAttached) == 0 {
				return ""
			}
			return string(n.Status.VolumesAttached[0].Name)
		}
		p := c.start()
		c.with(func() { c.silent["a"], c.silent["b"] = true, true })
		c.addPod("web-0", "a", "data")
		c.addPod("web-1", "b", "data")
		pass(time.Second)
		const name = "kubernetes.io/iscsi/10.0.0.1:3260:iqn.x:3"
		if a, b := names("a"), names("b"); a != name || b != "" {
			t.Errorf("the statuses name %q and %q", a, b)
		}
		p.Stop()
		c.removePod("web-0")
		c.start()
		pass(time.Second)
		if a, b := names("a"), names("b"); a != "" || b != name {
			t.Errorf("after a restart without the first Pod, the statuses name %q and %q", a, b)
		}
	})
}
