// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// volumesCase is about claims that get volumes, and about the volumes of Pods, which are attached to
// the Nodes of these, and detached when the Nodes are drained. The simulated driver makes and attaches
// the volumes, and simulated kubelets mount them.
var volumesCase = scaleCase{
	what:        fmt.Sprintf("claims that are provisioned for at once, of which two fifths are then used by Pods on %d Nodes, until all of these are drained", volumeNodes),
	size:        5_000,
	nodes:       volumeNodes,
	controllers: []string{"serviceaccount-controller", "persistentvolume-binder-controller", "persistentvolume-attach-detach-controller"},
	measure:     measureVolumes,
	plain:       measurePlainClaims,
	lines: func(int) []caseLine {
		return []caseLine{
			{name: "volumes-claims-bound-per-second", reading: "rate", aim: aim{least: 5}},
			// These write what is written for each claim, by the driver and by the manager.
			{name: "volumes-claims-vs-plain-clients", reading: "rate", plain: true},
			{name: "volumes-cpu-per-1000-claims", unit: "s", reading: "claims-cpu", aim: aim{most: 0.5}},
			{name: "volumes-attached-wall", unit: "s", reading: "attached", aim: aim{most: 1}},
			{name: "volumes-attached-cpu", unit: "s", reading: "attached-cpu", aim: aim{most: 0.5}},
			{name: "volumes-detached-wall", unit: "s", reading: "detached", aim: aim{most: 1}},
			{name: "volumes-detached-cpu", unit: "s", reading: "detached-cpu", aim: aim{most: 0.5}},
			{name: "volumes-memory-after", unit: "MB", reading: "memory", aim: aim{most: 1. / 3}},
		}
	},
}

const (
	volumeNodes = 100
	// The class of the simulated driver whose volumes are made at once, see docs/simulated-nodes.md.
	immediateClass = "immediate"
)

// attached is how many volumes are attached.
func (s *scene) attached() int { return max(1, s.size*2/5) }

func claimName(i int) string { return fmt.Sprint("claim-", i) }

func measureVolumes(ctx context.Context, s *scene) (readings, error) {
	ready := func(n *corev1.Node) bool { return readyStatus(n) == corev1.ConditionTrue }
	if err := s.awaitNodes(ctx, volumeNodes, ready); err != nil {
		return nil, err
	}
	bound, err := s.work(ctx, "claims", func() error {
		return s.untilClaimsAreBound(ctx, func(ctx context.Context) error {
			return s.each(ctx, s.size, func(ctx context.Context, i int) error { return s.createClaim(ctx, i, immediateClass) })
		})
	})
	if err != nil {
		return nil, err
	}
	found := readings{"rate": float64(s.size) / bound.wall, "claims-cpu": bound.cpu / float64(s.size) * 1000}
	attached, err := s.work(ctx, "attach", func() error {
		err := s.each(ctx, s.attached(), func(ctx context.Context, i int) error {
			_, err := s.plain.CoreV1().Pods("default").Create(ctx, podWithClaim(i), metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
		return s.awaitAttachments(ctx, s.attached())
	})
	if err != nil {
		return nil, err
	}
	if err := s.awaitRunningPods(ctx, s.attached()); err != nil {
		return nil, err
	}
	detached, err := s.work(ctx, "detach", func() error {
		err := s.each(ctx, s.attached(), func(ctx context.Context, i int) error {
			return s.plain.CoreV1().Pods("default").Delete(ctx, podWithClaim(i).Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))})
		})
		if err != nil {
			return err
		}
		return s.awaitAttachments(ctx, 0)
	})
	if err != nil {
		return nil, err
	}
	found["attached"], found["attached-cpu"] = attached.wall, attached.cpu
	found["detached"], found["detached-cpu"] = detached.wall, detached.cpu
	found["memory"], err = s.manager.memory()
	return found, err
}

func (s *scene) createClaim(ctx context.Context, i int, class string) error {
	_, err := s.plain.CoreV1().PersistentVolumeClaims("default").Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claimName(i)},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	return err
}

// podWithClaim is a Pod that no scheduler has to place.
func podWithClaim(i int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("user-", i)}, Spec: template(nil).Spec}
	pod.Spec.NodeName = fmt.Sprint("node-", i%volumeNodes)
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(i)},
	}}}
	return pod
}

// untilClaimsAreBound calls create, and returns when all claims are bound. A watch counts them: lists of all
// claims would occupy the server.
func (s *scene) untilClaimsAreBound(ctx context.Context, create func(context.Context) error) error {
	claims := s.plain.CoreV1().PersistentVolumeClaims("default")
	now, err := claims.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	w, err := claims.Watch(ctx, metav1.ListOptions{ResourceVersion: now.ResourceVersion})
	if err != nil {
		return err
	}
	defer w.Stop()
	created := make(chan error, 1)
	go func() { created <- create(ctx) }()
	bound := map[string]bool{}
	for len(bound) < s.size {
		select {
		case err := <-created:
			if err != nil {
				return err
			}
			created = nil
		case event, more := <-w.ResultChan():
			if !more || event.Type == watch.Error {
				return fmt.Errorf("the watch of claims ended, with %d of %d claims bound", len(bound), s.size)
			}
			if c, ok := event.Object.(*corev1.PersistentVolumeClaim); ok && c.Status.Phase == corev1.ClaimBound {
				bound[c.Name] = true
			}
		case <-time.After(time.Second):
			if err := s.aliveManager(); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("%d of %d claims are bound: %w", len(bound), s.size, ctx.Err())
		}
	}
	return nil
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
		there, attached = len(list.Items), countAttached(list)
		return there == want && attached == want, s.aliveManager()
	})
	if err != nil {
		return fmt.Errorf("of %d VolumeAttachments %d are attached, want %d: %w", there, attached, want, err)
	}
	return nil
}

func countAttached(list *storagev1.VolumeAttachmentList) (n int) {
	for i := range list.Items {
		if list.Items[i].Status.Attached {
			n++
		}
	}
	return n
}

// awaitRunningPods waits until so many Pods run: their kubelets have mounted the volumes.
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

// measurePlainClaims measures how fast the server takes the writes that each claim needs: the claim and its
// volume are created, the one is asked for and the other named, and both are bound.
func measurePlainClaims(ctx context.Context, s *scene) (readings, error) {
	began := time.Now()
	err := s.each(ctx, s.size, func(ctx context.Context, i int) error {
		// No driver acts on a claim without a class.
		if err := s.createClaim(ctx, i, ""); err != nil {
			return err
		}
		return s.bindPlainly(ctx, i)
	})
	return readings{"rate": float64(s.size) / time.Since(began).Seconds()}, err
}

func (s *scene) bindPlainly(ctx context.Context, i int) error {
	claim, volume := claimName(i), fmt.Sprint("volume-", i)
	_, err := s.plain.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volume},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:    &corev1.ObjectReference{Namespace: "default", Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "plain.example.com", VolumeHandle: volume},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	patchClaim := func(patch string, subresources ...string) error {
		_, err := s.plain.CoreV1().PersistentVolumeClaims("default").Patch(ctx, claim, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
		return err
	}
	const bound = `{"status":{"phase":"Bound"}}`
	_, volumeErr := s.plain.CoreV1().PersistentVolumes().Patch(ctx, volume, types.MergePatchType, []byte(bound), metav1.PatchOptions{}, "status")
	return errors.Join(volumeErr,
		patchClaim(`{"metadata":{"annotations":{"example.com/wanted":"yes"}}}`),
		patchClaim(fmt.Sprintf(`{"spec":{"volumeName":%q}}`, volume)),
		patchClaim(bound, "status"))
}
