// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvcprotection

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Which Pods keep a claim, and which use it.
func TestWhichPodsKeepAClaim(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-data", UID: "c"}}
	own := claim.DeepCopy()
	own.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "p", Controller: new(true)}}
	now := metav1.NewTime(time.Unix(0, 0))
	named := func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "web-data"}}})
	}
	ephemeral := func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
	}
	bound := func(p *corev1.Pod) { p.Spec.NodeName = "n" }
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	deleted := func(seconds int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &seconds }
	}
	status := func(s corev1.ContainerState) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: s}} }
	}
	running := status(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	over := status(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
	for _, c := range []struct {
		name        string
		claim       *corev1.PersistentVolumeClaim
		pod         []func(*corev1.Pod)
		keeps, uses bool
	}{
		{"without volumes", claim, []func(*corev1.Pod){bound}, false, false},
		{"on a node", claim, []func(*corev1.Pod){named, bound}, true, true},
		{"not on a node", claim, []func(*corev1.Pod){named}, false, true},
		{"that has ended", claim, []func(*corev1.Pod){named, bound, ended}, true, false},
		{"that is being deleted and runs", claim, []func(*corev1.Pod){named, bound, running, deleted(30)}, true, true},
		{"that is being deleted and runs no more", claim, []func(*corev1.Pod){named, bound, over, deleted(30)}, true, false},
		{"that runs no more", claim, []func(*corev1.Pod){named, bound, over}, true, true},
		{"with grace period 0", claim, []func(*corev1.Pod){named, bound, deleted(0)}, true, false},
		{"whose ephemeral volume's it is", own, []func(*corev1.Pod){ephemeral, bound}, true, true},
		{"whose ephemeral volume's it is, shut down", own, []func(*corev1.Pod){ephemeral, bound, running, deleted(0)}, false, true},
		{"with an ephemeral volume of that name, of another owner", claim, []func(*corev1.Pod){ephemeral, bound}, false, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "p"}}
		for _, change := range c.pod {
			change(pod)
		}
		if keeps, uses := keeps(pod, c.claim), uses(pod, c.claim); keeps != c.keeps || uses != c.uses {
			t.Errorf("a Pod %s: keeps %t, uses %t", c.name, keeps, uses)
		}
	}
}

func TestAClaimThatIsNotRemovedNamesItsPods(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "files"}}
	var pods []*corev1.Pod
	for _, name := range []string{"web-0", "web-1", "other"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: "n"}}
		if name != "other" {
			pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "files"}}}}
		}
		pods = append(pods, pod)
	}
	if users := usersOf(claim, pods, keeps); !slices.Equal(users, []string{"Pod web-0", "Pod web-1"}) {
		t.Errorf("the users are %q", users)
	}
}
