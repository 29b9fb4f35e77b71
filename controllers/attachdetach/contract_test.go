// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// External attachers, drivers and a kube-controller-manager that worked before find a
// VolumeAttachment by this name. The hash is that of sha256sum.
func TestTheNameOfAnAttachmentIsTheHashOfVolumeDriverAndNode(t *testing.T) {
	const want = "csi-a502ed18e5dff0eebba41cf9f083f12abee44c695b71965e42df4efa46235302"
	if got := AttachmentName("h-1", "disk.example.com", "node-a"); got != want {
		t.Errorf("the name is %s, want %s", got, want)
	}
}

func TestWhichVolumesAreForOneNode(t *testing.T) {
	const rwo, rwop, rox, rwx = corev1.ReadWriteOnce, corev1.ReadWriteOncePod, corev1.ReadOnlyMany, corev1.ReadWriteMany
	for _, test := range []struct {
		modes []corev1.PersistentVolumeAccessMode
		want  bool
	}{
		{nil, false}, // nothing is known of it, and the driver refuses a second node if it has to
		{[]corev1.PersistentVolumeAccessMode{rwo}, true},
		{[]corev1.PersistentVolumeAccessMode{rwop}, true},
		{[]corev1.PersistentVolumeAccessMode{rox}, false},
		{[]corev1.PersistentVolumeAccessMode{rwx}, false},
		{[]corev1.PersistentVolumeAccessMode{rwo, rox}, false},
	} {
		if got := exclusive(test.modes); got != test.want {
			t.Errorf("a volume with the modes %v is for one node: %t", test.modes, got)
		}
	}
}

func TestANodeWhoseKubeletAttachesVolumesItselfIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.addVolume("data")
		c.addVolume("other")
		c.changeNode("a", func(n *corev1.Node) { n.Annotations = nil })
		p := c.start()
		c.addPod("web-0", "a", "data")
		c.addPod("web-1", "b", "other")
		pass(time.Minute)
		c.wantAt("at a node without the annotation", "data")
		c.wantMounted("at a node with the annotation", "other", "b")
		if reasons := p.Reasons(string(unique("data"))); len(reasons) == 0 || !strings.HasPrefix(reasons[0], codeNotManaged+": Pod ns/web-0: node a does not exist, or its kubelet does not leave attaching to the controller") {
			t.Errorf("the reasons are %q", reasons)
		}
		c.changeNode("a", func(n *corev1.Node) { n.Annotations = map[string]string{Annotation: "true"} })
		pass(time.Second)
		c.wantMounted("when the node has the annotation", "data", "a")
	})
}

// The kubelet mounts what the status of its Node names. So the entry goes before the volume does.
func TestTheEntryOfAVolumeGoesBeforeTheVolumeAndComesBackIfADetachFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := attachedCluster(t, "a")
		c.wantMounted("with a Pod", "data", "a")
		var refuses atomic.Bool
		deletes := 0
		refuses.Store(true)
		c.attachments.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "delete" {
				return c.safe(q)
			}
			if deletes++; len(c.reported("a")) > 0 {
				t.Errorf("the volume is detached while the status of the node names it")
			}
			if refuses.Load() {
				return fakeapi.Forbidden("volumeattachments")
			}
			return c.safe(q)
		})
		c.removePod("web-0")
		pass(time.Minute)
		if deletes == 0 {
			t.Fatal("no detach was tried")
		}
		c.wantAt("after a detach that has failed", "data", "a")
		c.addPod("web-1", "a", "data")
		pass(time.Minute)
		if got := c.reported("a"); !slices.Equal(got, []string{string(unique("data"))}) {
			t.Errorf("after the detach has failed, with another Pod, the status names %q", got)
		}
		c.wantMounted("with another Pod", "data", "a")
		refuses.Store(false)
		c.removePod("web-1")
		pass(5 * time.Minute)
		c.wantAt("when the server accepts it", "data")
	})
}

// Source of the times: k8s.io/kubernetes/pkg/util/goroutinemap/exponentialbackoff.
func TestAttachingThatIsRefusedIsTriedAfterHalfASecondAndThenEachTimeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a")
		c.addVolume("data")
		c.addVolume("other")
		var at []time.Time
		c.attachments.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "create" || len(at) > 12 {
				return nil
			}
			if len(at) == 0 || !at[len(at)-1].Equal(time.Now()) {
				at = append(at, time.Now())
			}
			return fakeapi.Forbidden("volumeattachments")
		})
		c.start()
		c.addPod("web-0", "a", "data")
		pass(30 * time.Minute)
		var waits []time.Duration
		for i := range at[1:] {
			waits = append(waits, at[i+1].Sub(at[i]).Round(100*time.Millisecond))
		}
		want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, 64 * time.Second}
		const longest = 2*time.Minute + 2*time.Second
		for len(want) < len(waits) {
			want = append(want, longest)
		}
		if !slices.Equal(waits, want) || len(waits) < 10 {
			t.Errorf("the waits are %v, want %v", waits, want)
		}
		c.wantMounted("when the server accepts it", "data", "a")
	})
}
