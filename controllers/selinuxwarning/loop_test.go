// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// csiDrivers is the kind of drivers.
var csiDrivers = object.Resource{Group: storagev1.GroupName, Version: "v1", Plural: "csidrivers", Kind: "CSIDriver"}

// cluster is a server in memory, inside of a bubble of synctest, with the controller.
type cluster struct {
	*managertest.Bubble
	t                              *testing.T
	pods, claims, volumes, drivers *fakeapi.Resource
	process                        *managertest.Process
	metrics                        prometheus.Collector
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	b := managertest.NewBubble(t)
	return &cluster{
		Bubble: b, t: t,
		pods:    b.Serve(managertest.Pods, fakeapi.WithStatus()),
		claims:  b.Serve(managertest.Claims, fakeapi.WithStatus()),
		volumes: b.Serve(managertest.Volumes, fakeapi.WithStatus()),
		drivers: b.Serve(csiDrivers),
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

// newPod returns a Pod that mounts the volume data, which is the claim data, with a level.
func newPod(namespace, name, level string) *corev1.Pod {
	claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{mounting(level, "data")},
			Volumes:    []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}}},
		},
	}
}

// withDisk replaces the claim of a Pod by a disk that the Pod names itself.
func withDisk(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "p", IQN: "q"}}
	return pod
}

func (c *cluster) addPods(pods ...*corev1.Pod) {
	for _, pod := range pods {
		c.Add(c.pods, pod)
	}
	managertest.Settle()
}

// addClaim adds the claim data of the namespace ns, which is not bound.
func (c *cluster) addClaim() {
	c.Add(c.claims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "uid-of-claim"}})
	managertest.Settle()
}

// addBound adds the claim data, and the volume disk that it is bound to.
func (c *cluster) addBound() {
	c.t.Helper()
	c.addVolume()
	c.reserve("uid-of-claim")
	c.addClaim()
	c.bind()
}

// bind binds the claim to the volume disk.
func (c *cluster) bind() {
	c.t.Helper()
	c.change(fakeapi.Change(c.claims, object.Key{Namespace: "ns", Name: "data"}, func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.VolumeName, claim.Status.Phase = "disk", corev1.ClaimBound
	}))
}

// addVolume adds the volume disk of a CSI driver, which is bound to no claim.
func (c *cluster) addVolume() {
	c.Add(c.volumes, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example", VolumeHandle: "disk"}},
		},
	})
	managertest.Settle()
}

// reserve makes the volume disk refer to the claim of a UID.
func (c *cluster) reserve(uid types.UID) {
	c.t.Helper()
	c.change(fakeapi.Change(c.volumes, object.Key{Name: "disk"}, func(volume *corev1.PersistentVolume) {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "data", UID: uid}
	}))
}

func (c *cluster) addDriver(mounts bool) {
	c.Add(c.drivers, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi.example"}, Spec: storagev1.CSIDriverSpec{SELinuxMount: &mounts}})
	managertest.Settle()
}

// change settles after a change that has succeeded.
func (c *cluster) change(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	managertest.Settle()
}

// want compares the Events about labels and the series of the metric with the numbers that are
// wanted.
func (c *cluster) want(when string, events, series int) {
	c.t.Helper()
	if got := c.Notes("SELinuxLabelConflict"); len(got) != events {
		c.t.Errorf("%s, the Events about labels are %q, want %d", when, got, events)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c.metrics)
	families, err := registry.Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	got := 0
	for _, family := range families {
		if family.GetName() != "selinux_warning_controller_selinux_volume_conflict" {
			c.t.Errorf("there is a metric %s", family.GetName())
		}
		got += len(family.GetMetric())
	}
	if got != series {
		c.t.Errorf("%s, the metric has %d series, want %d:\n%v", when, got, series, families)
	}
}

func TestBothPodsOfAConflictGetAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t).start()
		plain := newPod("ns", "plain", "s0")
		plain.Spec.Volumes, plain.Spec.Containers[0].VolumeMounts = nil, nil
		c.addPods(plain, withDisk(newPod("ns", "one", "s0:c1")))
		c.want("with one Pod", 0, 0)
		c.addPods(withDisk(newPod("ns", "two", "s0:c2")))
		c.want("with two Pods", 2, 2)
		notes := c.Notes("SELinuxLabelConflict")
		slices.Sort(notes)
		want := []string{
			`SELinuxLabel ":::s0:c1" conflicts with pod two that uses the same volume as this pod with SELinuxLabel ":::s0:c2". If both pods land on the same node, only one of them may access the volume.`,
			`SELinuxLabel ":::s0:c2" conflicts with pod one that uses the same volume as this pod with SELinuxLabel ":::s0:c1". If both pods land on the same node, only one of them may access the volume.`,
		}
		if !slices.Equal(notes, want) {
			t.Errorf("the Events are %q, want %q", notes, want)
		}
		c.change(fakeapi.Change(c.pods, object.Key{Namespace: "ns", Name: "one"}, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }))
		c.want("when a Pod has started", 2, 2)
		c.change(fakeapi.Change(c.pods, object.Key{Namespace: "ns", Name: "one"}, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }))
		c.want("when a Pod has ended", 2, 0)
	})
}

func TestPodsThatDifferInThePolicyGetEventsAboutIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t).start()
		other := withDisk(newPod("other", "two", "s0:c1"))
		other.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxChangePolicy: new(recursive)}
		c.addPods(withDisk(newPod("ns", "one", "s0:c1")), other)
		notes := c.Notes("SELinuxChangePolicyConflict")
		slices.Sort(notes)
		const end = ` conflicts with another pod that uses the same volume as this pod with a different SELinuxChangePolicy. If both pods land on the same node, only one of them may access the volume.`
		if want := []string{`SELinuxChangePolicy"MountOption"` + end, `SELinuxChangePolicy"Recursive"` + end}; !slices.Equal(notes, want) {
			t.Errorf("the Events are %q, want %q", notes, want)
		}
		c.want("about labels", 2, 4)
		c.Delete(c.pods, object.KeyOf(other))
		c.want("when a Pod is gone", 2, 0)
	})
}

// A Pod waits for its claim, its volume and its driver, in whichever order they come.
func TestAPodWaitsForItsVolume(t *testing.T) {
	for name, order := range map[string][]string{
		"driver-last":      {"claim", "binding", "volume", "reservation by name", "reservation", "driver"},
		"reservation-last": {"driver", "volume", "reservation by name", "claim", "binding", "reservation"},
		"binding-last":     {"driver", "volume", "reservation", "claim", "binding"},
		"pods-last":        {"driver", "volume", "reservation", "claim", "binding", "pods"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t).start()
				pods := func() { c.addPods(newPod("ns", "one", "s0:c1"), newPod("ns", "two", "s0:c2")) }
				if !slices.Contains(order, "pods") {
					pods()
				}
				steps := map[string]func(){
					"claim": c.addClaim, "binding": c.bind, "volume": c.addVolume,
					"reservation by name": func() { c.reserve("") }, "reservation": func() { c.reserve("uid-of-claim") },
					"driver": func() { c.addDriver(true) }, "pods": pods,
				}
				for _, step := range order {
					c.want("before "+step, 0, 0)
					steps[step]()
				}
				c.want("in the end", 2, 2)
			})
		})
	}
}

func TestAChangeOfTheDriverChangesItsVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addDriver(false)
		c.addBound()
		c.addPods(newPod("ns", "one", "s0:c1"), newPod("ns", "two", "s0:c2"))
		c.start()
		c.want("without labels", 0, 0)
		key := object.Key{Name: "csi.example"}
		c.change(fakeapi.Change(c.drivers, key, func(d *storagev1.CSIDriver) { d.Spec.SELinuxMount = new(true) }))
		c.want("with labels", 2, 2)
		if notes := c.Notes("SELinuxChangePolicyConflict"); len(notes) != 0 {
			t.Errorf("Pods of one policy have the Events %q", notes)
		}
		c.Delete(c.drivers, key)
		c.want("without the driver", 2, 0)
	})
}

func TestAPodWithSeveralLabelsGetsOneEventForAVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t).start()
		pod := withDisk(newPod("ns", "one", "s0:c1"))
		c.addPods(pod)
		if notes := c.Notes(severalLabels); len(notes) != 0 {
			t.Errorf("with one container, the Events are %q", notes)
		}
		debugger := mounting("s0:c2", "data")
		c.change(fakeapi.Change(c.pods, object.KeyOf(pod), func(pod *corev1.Pod) {
			pod.Generation++
			pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "debugger", SecurityContext: debugger.SecurityContext, VolumeMounts: debugger.VolumeMounts,
			}}}
		}))
		want := []string{`Volume "data" is mounted twice with different SELinux labels inside this pod`}
		if notes := c.Notes(severalLabels); !slices.Equal(notes, want) {
			t.Errorf("with another container, the Events are %q, want %q", notes, want)
		}
		c.addPods(withDisk(newPod("ns", "two", "s0:c3")))
		c.want("with a Pod that has several labels", 0, 0)
	})
}

// A claim with the name of an ephemeral volume's is the volume of the Pod that owns it, and of no
// other Pod.
func TestAnEphemeralVolumeIsTheClaimThatThePodOwns(t *testing.T) {
	for name, c := range map[string]struct {
		owner     types.UID
		conflicts int
	}{"own": {"uid-of-da", 2}, "foreign": {"uid-of-another", 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				on := newCluster(t).start()
				on.addDriver(true)
				on.addVolume()
				on.change(fakeapi.Change(on.volumes, object.Key{Name: "disk"}, func(volume *corev1.PersistentVolume) {
					volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "da-ta", UID: "uid-of-claim"}
				}))
				owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "da", UID: c.owner, Controller: new(true)}
				on.Add(on.claims, &corev1.PersistentVolumeClaim{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "da-ta", UID: "uid-of-claim", OwnerReferences: []metav1.OwnerReference{owner}},
					Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "disk"},
					Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
				})
				ephemeral, named := newPod("ns", "da", "s0:c1"), newPod("ns", "two", "s0:c2")
				ephemeral.Spec.Volumes[0] = corev1.Volume{Name: "ta", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}
				ephemeral.Spec.Containers[0].VolumeMounts[0].Name = "ta"
				named.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "da-ta"
				on.addPods(ephemeral, named)
				on.want("with the claim", c.conflicts, c.conflicts)
			})
		})
	}
}

// Only the creation, the end and the deletion of a Pod, and a change of its spec, start a run.
func TestTheStatusOfAPodAndOfItsClaimStartsNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addDriver(true)
		c.addBound()
		pod := newPod("ns", "one", "s0:c1")
		c.addPods(pod)
		c.start()
		runs := func() int { return int(c.process.Runs().Stats().Runs) }
		before := runs()
		c.change(fakeapi.Change(c.pods, object.KeyOf(pod), func(pod *corev1.Pod) {
			pod.Status.Phase, pod.Status.Message, pod.Labels = corev1.PodRunning, "runs", map[string]string{"a": "b"}
		}))
		c.change(fakeapi.Change(c.claims, object.Key{Namespace: "ns", Name: "data"}, func(claim *corev1.PersistentVolumeClaim) {
			claim.Labels = map[string]string{"a": "b"}
		}))
		c.change(fakeapi.Change(c.volumes, object.Key{Name: "disk"}, func(volume *corev1.PersistentVolume) {
			volume.Labels = map[string]string{"a": "b"}
		}))
		c.change(fakeapi.Change(c.drivers, object.Key{Name: "csi.example"}, func(driver *storagev1.CSIDriver) {
			driver.Labels = map[string]string{"a": "b"}
		}))
		if n := runs() - before; n != 0 {
			t.Errorf("changes that do not matter have started %d runs", n)
		}
		c.change(fakeapi.Change(c.pods, object.KeyOf(pod), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }))
		if n := runs() - before; n != 1 {
			t.Errorf("the end of the Pod has started %d runs, want 1", n)
		}
	})
}

func TestAManagerThatStartsFindsTheConflictsThatThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t).start()
		c.addPods(withDisk(newPod("ns", "one", "s0:c1")), withDisk(newPod("ns", "two", "s0:c2")))
		c.want("at first", 2, 2)
		c.process.Kill()
		c.Delete(c.pods, object.Key{Namespace: "ns", Name: "one"})
		c.addPods(withDisk(newPod("ns", "three", "s0:c2")), withDisk(newPod("ns", "four", "s0:c4")))
		c.start()
		c.want("after the restart", 6, 4)
	})
}
