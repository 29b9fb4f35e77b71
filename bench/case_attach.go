// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// attachCase is about volumes that are attached to the Nodes of their Pods, and detached when these
// Nodes are drained. The simulated driver attaches them, and simulated kubelets mount them.
var attachCase = scaleCase{
	what:        fmt.Sprintf("volumes of Pods on %d Nodes, which are attached at once, and detached when all Nodes are drained", attachNodes),
	size:        2_000,
	nodes:       attachNodes,
	controllers: []string{"serviceaccount-controller", "persistentvolume-attach-detach-controller"},
	measure:     measureAttach,
	lines: func(int) []caseLine {
		return []caseLine{
			{name: "attach-wall", unit: "s", reading: "attached", aim: aim{most: 1}},
			{name: "attach-cpu", unit: "s", reading: "attached-cpu", aim: aim{most: 0.5}},
			{name: "attach-drained-wall", unit: "s", reading: "drained", aim: aim{most: 1}},
			{name: "attach-drained-cpu", unit: "s", reading: "drained-cpu", aim: aim{most: 0.5}},
			{name: "attach-memory-after", unit: "MB", reading: "memory", aim: aim{most: 1. / 3}},
		}
	},
}

const (
	attachNodes = 100
	// The simulated driver, see docs/simulated-nodes.md.
	simulatedDriver = "sim.setpoint.io"
)

func measureAttach(ctx context.Context, s *scene) (readings, error) {
	ready := func(n *corev1.Node) bool { return readyStatus(n) == corev1.ConditionTrue }
	if err := s.awaitNodes(ctx, attachNodes, ready); err != nil {
		return nil, err
	}
	if err := s.each(ctx, s.size, s.createBoundVolume); err != nil {
		return nil, err
	}
	attached, err := s.work(ctx, "attach", func() error {
		err := s.each(ctx, s.size, func(ctx context.Context, i int) error {
			_, err := s.plain.CoreV1().Pods("default").Create(ctx, podWithVolume(i), metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
		return s.awaitAttachments(ctx, s.size)
	})
	if err != nil {
		return nil, err
	}
	// Their kubelets have mounted the volumes.
	if err := s.awaitRunningPods(ctx, s.size); err != nil {
		return nil, err
	}
	drained, err := s.work(ctx, "drain", func() error {
		err := s.each(ctx, s.size, func(ctx context.Context, i int) error {
			return s.plain.CoreV1().Pods("default").EvictV1(ctx, &policyv1.Eviction{
				ObjectMeta:    metav1.ObjectMeta{Namespace: "default", Name: podWithVolume(i).Name},
				DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))},
			})
		})
		if err != nil {
			return err
		}
		return s.awaitAttachments(ctx, 0)
	})
	if err != nil {
		return nil, err
	}
	found := readings{
		"attached": attached.wall, "attached-cpu": attached.cpu,
		"drained": drained.wall, "drained-cpu": drained.cpu,
	}
	found["memory"], err = s.manager.memory()
	return found, err
}

// createBoundVolume creates a claim and its volume, bound to each other, without a controller.
func (s *scene) createBoundVolume(ctx context.Context, i int) error {
	claims := s.plain.CoreV1().PersistentVolumeClaims("default")
	name := fmt.Sprint("disk-", i)
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim, err := claims.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(""), VolumeName: name, AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = s.plain.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes,
			ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: simulatedDriver, VolumeHandle: name},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = claims.Patch(ctx, name, types.MergePatchType, []byte(`{"status":{"phase":"Bound"}}`), metav1.PatchOptions{}, "status")
	return err
}

// podWithVolume is a Pod with a volume. No scheduler has to place it.
func podWithVolume(i int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("user-", i)}, Spec: template(nil).Spec}
	pod.Spec.NodeName = fmt.Sprint("node-", i%attachNodes)
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("disk-", i)},
	}}}
	return pod
}

// awaitAttachments waits until there are so many VolumeAttachments, and all are attached.
func (s *scene) awaitAttachments(ctx context.Context, want int) error {
	there, attached := 0, 0
	err := poll(ctx, fmt.Sprintf("%d VolumeAttachments", want), func() (bool, error) {
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return false, err
		}
		list, err := s.plain.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		there, attached = len(list.Items), 0
		for i := range list.Items {
			if list.Items[i].Status.Attached {
				attached++
			}
		}
		return there == want && attached == want, s.aliveManager()
	})
	if err != nil {
		return fmt.Errorf("of %d VolumeAttachments %d are attached, want %d: %w", there, attached, want, err)
	}
	return nil
}

// awaitRunningPods waits until so many Pods run.
func (s *scene) awaitRunningPods(ctx context.Context, want int) error {
	return poll(ctx, fmt.Sprintf("%d Pods to run", want), func() (bool, error) {
		if err := pause(ctx, time.Second); err != nil {
			return false, err
		}
		list, err := s.plain.CoreV1().Pods("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		running := 0
		for i := range list.Items {
			if list.Items[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == want, s.aliveManager()
	})
}
