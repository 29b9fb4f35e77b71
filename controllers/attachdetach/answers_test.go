// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// reported returns what the status of a node says is attached.
func (c *cluster) reported(node string) (names []string) {
	c.t.Helper()
	n, err := fakeapi.Read[*corev1.Node](c.nodes, object.Key{Name: node})
	c.must(err)
	for _, v := range n.Status.VolumesAttached {
		names = append(names, string(v.Name))
	}
	return names
}

// answer changes the VolumeAttachment of a volume at a node, as a driver does.
func (c *cluster) answer(volume, node string, change func(*storagev1.VolumeAttachment)) {
	c.t.Helper()
	c.must(fakeapi.Change(c.attachments, object.Key{Name: AttachmentName("h-"+volume, driverName, node)}, change))
	pass(time.Second)
}

func attached(va *storagev1.VolumeAttachment) { va.Status.Attached, va.Status.AttachError = true, nil }

func TestAnAnswerThatComesAfterTheLimitCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a")
		c.addVolume("data")
		c.with(func() { c.hangs = true })
		c.start()
		c.addPod("web-0", "a", "data")
		pass(3 * time.Minute)
		if notes := c.notes(reasonFailedAttach, "web-0"); len(notes) == 0 {
			t.Error("no Event says that the driver does not answer")
		}
		c.answer("data", "a", attached)
		c.wantMounted("after the late answer", "data", "a")
		c.wantNote(reasonAttached, "web-0", `AttachVolume.Attach succeeded for volume "pv-data" `)
		if got := c.reported("a"); !slices.Equal(got, []string{string(unique("data"))}) {
			t.Errorf("the status names %q", got)
		}
	})
}

func TestASecondAnswerChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := attachedCluster(t, "a")
		c.with(func() { c.hangs = true }) // the test answers from now on
		c.answer("data", "a", func(va *storagev1.VolumeAttachment) {
			attached(va)
			va.Annotations = map[string]string{"driver": "has answered again"}
		})
		c.answer("data", "a", func(va *storagev1.VolumeAttachment) {
			va.Status.AttachError = &storagev1.VolumeError{Message: "an old request has failed"}
		})
		pass(time.Minute)
		c.wantAt("after a second answer", "data", "a")
		c.wantMounted("after a second answer", "data", "a")
		c.wantNote(reasonAttached, "web-0", `AttachVolume.Attach succeeded for volume "pv-data" `)
		c.wantNote(reasonFailedAttach, "web-0")
	})
}

func TestAnAnswerAfterThePodIsGoneIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.addVolume("data")
		c.with(func() { c.hangs = true })
		c.start()
		c.addPod("web-0", "a", "data")
		pass(time.Second)
		c.removePod("web-0")
		pass(time.Second)
		// The VolumeAttachment is being deleted, and the driver attaches all the same.
		c.answer("data", "a", attached)
		c.addPod("web-1", "b", "data")
		pass(time.Minute)
		if got := c.reported("a"); len(got) > 0 {
			t.Errorf("the status names %q", got)
		}
		c.wantAt("before the driver has detached it", "data", "a")
		c.with(func() { c.hangs = false })
		pass(time.Second)
		c.wantAt("after the driver has detached it", "data", "b")
		c.wantMounted("after the driver has detached it", "data", "b")
	})
}

func TestAnAttachmentThatAnotherClientRemovesIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := attachedCluster(t, "a")
		c.attachments.Remove(object.Key{Name: AttachmentName("h-data", driverName, "a")})
		pass(time.Second)
		c.wantAt("after it was removed", "data", "a")
		if got := c.reported("a"); len(got) != 1 {
			t.Errorf("the status names %q", got)
		}
	})
}

func TestVolumesThatStandInAPodAreAttachedIfTheirPluginWasTakenOver(t *testing.T) {
	for _, test := range []struct {
		name   string
		source corev1.VolumeSource
		driver string // "" if it is never attached
	}{
		{"taken over", corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{VolumeID: "disk"}}, "cinder.csi.openstack.org"},
		{"ephemeral volume of a CSI driver", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: driverName}}, ""},
		{"of a plugin that attaches nothing", corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "a", Path: "/"}}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, "a")
			c.with(func() { c.silent["a"] = true }) // the kubelet knows claims only
			c.start()
			c.must(c.pods.Add(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0"},
				Spec:       corev1.PodSpec{NodeName: "a", Volumes: []corev1.Volume{{Name: "disk", VolumeSource: test.source}}},
			}))
			pass(time.Second)
			all, err := fakeapi.Objects[*storagev1.VolumeAttachment](c.attachments)
			c.must(err)
			if test.driver == "" {
				if len(all) > 0 {
					t.Errorf("%s: there is a VolumeAttachment %+v", test.name, all[0].Spec)
				}
				return
			}
			if len(all) != 1 || all[0].Spec.Attacher != test.driver || all[0].Spec.Source.InlineVolumeSpec == nil || !all[0].Status.Attached {
				t.Fatalf("%s: the VolumeAttachments are %+v", test.name, all)
			}
			if got := c.reported("a"); !slices.Equal(got, []string{"kubernetes.io/csi/" + test.driver + "^disk"}) {
				t.Errorf("%s: the status names %q", test.name, got)
			}
			c.removePod("web-0")
			pass(time.Second)
			if keys := c.attachments.Keys(); len(keys) > 0 || len(c.reported("a")) > 0 {
				t.Errorf("%s: after the Pod there are %q, and the status names %q", test.name, keys, c.reported("a"))
			}
		})
	}
}

func TestAVolumeOfAPluginThatWasTakenOverIsAttachedByTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a")
		c.addVolume("data")
		c.must(fakeapi.Change(c.pvs, object.Key{Name: "pv-data"}, func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "disk"}}
		}))
		c.with(func() { c.silent["a"] = true })
		c.start()
		c.addPod("web-0", "a", "data")
		pass(time.Second)
		va, err := fakeapi.Read[*storagev1.VolumeAttachment](c.attachments, object.Key{Name: AttachmentName("disk", "cinder.csi.openstack.org", "a")})
		c.must(err)
		if va.Spec.Attacher != "cinder.csi.openstack.org" || *va.Spec.Source.PersistentVolumeName != "pv-data" {
			t.Errorf("the VolumeAttachment is %+v", va.Spec)
		}
		if got := c.reported("a"); !slices.Equal(got, []string{"kubernetes.io/csi/cinder.csi.openstack.org^disk"}) {
			t.Errorf("the status names %q", got)
		}
	})
}

func TestWithoutForceOnTimeoutOnlyTheTaintForces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.addVolume("data")
		o := Defaults()
		o.DisableForceDetachOnTimeout = true
		var running *Controller
		p := managertest.Run(t, c.api.Config(), managertest.Making(func(h controller.Host, o Options) (controller.Runnable, error) {
			made, err := New(h, o)
			running, _ = made.(*Controller)
			return made, err
		}, o))
		pass(time.Second)
		c.addPod("web-0", "a", "data")
		pass(time.Second)
		wantMetrics(t, running, "attachdetach_controller_total_volumes{kubernetes.io/csi:disk.example.com,actual_state_of_world} 1",
			"attachdetach_controller_total_volumes{kubernetes.io/csi:disk.example.com,desired_state_of_world} 1",
			"storage_count_attachable_volumes_in_use{a,kubernetes.io/csi:disk.example.com} 1",
			"storage_operation_duration_seconds{false,volume_attach,success,kubernetes.io/csi:disk.example.com} 1")
		c.fail("a")
		c.removePod("web-0")
		c.addPod("web-1", "b", "data")
		pass(7 * time.Minute)
		c.wantAt("after the time", "data", "a")
		if reasons := strings.Join(p.Reasons(string(unique("data"))), "\n"); !strings.Contains(reasons, "--disable-force-detach-on-timeout is set") {
			t.Errorf("the reasons are %s", reasons)
		}
		c.wantNote(reasonWaits, "web-1", `Volume "pv-data" is in use of node a, which is not ready: it stays there until the node unmounts it, or gets the taint node.kubernetes.io/out-of-service`)
		c.with(func() { c.force = true })
		c.changeNode("a", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
		})
		pass(time.Second)
		c.wantAt("with the taint", "data", "b")
		wantMetrics(t, running, "attach_detach_controller_attachdetach_controller_forced_detaches{out-of-service} 1",
			"attachdetach_controller_total_volumes{kubernetes.io/csi:disk.example.com,actual_state_of_world} 1",
			"attachdetach_controller_total_volumes{kubernetes.io/csi:disk.example.com,desired_state_of_world} 1",
			"storage_count_attachable_volumes_in_use{b,kubernetes.io/csi:disk.example.com} 1",
			"storage_operation_duration_seconds{false,volume_attach,success,kubernetes.io/csi:disk.example.com} 2",
			"storage_operation_duration_seconds{false,volume_detach,success,kubernetes.io/csi:disk.example.com} 1")
	})
}

// wantMetrics compares the series of the controller with NAME{VALUES OF LABELS} VALUE.
func wantMetrics(t *testing.T, c prometheus.Collector, want ...string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		for _, metric := range family.Metric {
			var labels []string
			for _, label := range metric.Label {
				labels = append(labels, label.GetValue())
			}
			got = append(got, fmt.Sprintf("%s{%s} %v", family.GetName(), strings.Join(labels, ","), metric.GetGauge().GetValue()+metric.GetCounter().GetValue()+float64(metric.GetHistogram().GetSampleCount())))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the metrics are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestThePluginOfAVolumeIsNamedInFull(t *testing.T) {
	for volume, want := range map[corev1.UniqueVolumeName]string{
		"kubernetes.io/csi/disk.example.com^h/1":    "kubernetes.io/csi:disk.example.com",
		"kubernetes.io/fc/[500a0982991b8dc5]:0":     "kubernetes.io/fc",
		"kubernetes.io/iscsi/10.0.0.1:3260:iqn.x:3": "kubernetes.io/iscsi",
	} {
		if got := pluginOf(volume); got != want {
			t.Errorf("%s is of %q, want %q", volume, got, want)
		}
	}
}

func TestADriverThatSucceedsAfterItHasFailedIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a")
		c.addVolume("data")
		c.with(func() { c.hangs = true })
		p := c.start()
		c.addPod("web-0", "a", "data")
		pass(time.Second)
		c.answer("data", "a", func(va *storagev1.VolumeAttachment) {
			va.Status.AttachError = &storagev1.VolumeError{Message: "no such disk"}
		})
		pass(10 * time.Second) // it waits for its next try, and the driver does not
		c.wantReason(p, "data", codeBackingOff+": Pod ns/web-0: the volume pv-data could not be attached at node a, 5 times in a row; the next try is at 2000-01-01T00:00:17Z: no such disk")
		c.answer("data", "a", attached)
		c.wantMounted("after the driver has tried again", "data", "a")
		c.wantNote(reasonAttached, "web-0", `AttachVolume.Attach succeeded for volume "pv-data" `)
		pass(time.Minute)
		c.wantNote(reasonAttached, "web-0", `AttachVolume.Attach succeeded for volume "pv-data" `)
	})
}
