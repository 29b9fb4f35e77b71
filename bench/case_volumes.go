// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// volumesCase is about claims that get volumes, which the simulated driver makes. There is no driver
// here that attaches volumes.
var volumesCase = scaleCase{
	what:        "claims that are provisioned for at once",
	size:        5_000,
	nodes:       1, // the driver comes with the nodes
	controllers: []string{"serviceaccount-controller", "persistentvolume-binder-controller"},
	measure:     measureVolumes,
	plain:       measurePlainClaims,
	lines: func(int) []caseLine {
		return []caseLine{
			{name: "volumes-claims-bound-per-second", reading: "rate", aim: aim{least: 5}},
			// These write what is written for each claim, by the driver and by the manager.
			{name: "volumes-claims-vs-plain-clients", reading: "rate", plain: true},
			{name: "volumes-cpu-per-1000-claims", unit: "s", reading: "claims-cpu", aim: aim{most: 0.5}},
			{name: "volumes-memory-after", unit: "MB", reading: "memory", aim: aim{most: 1. / 3}},
		}
	},
}

// The class of the simulated driver whose volumes are made at once, see docs/simulated-nodes.md.
const immediateClass = "immediate"

func claimName(i int) string { return fmt.Sprint("claim-", i) }

func measureVolumes(ctx context.Context, s *scene) (readings, error) {
	bound, err := s.work(ctx, "claims", func() error {
		return s.untilClaimsAreBound(ctx, func(ctx context.Context) error {
			return s.each(ctx, s.size, func(ctx context.Context, i int) error { return s.createClaim(ctx, i, immediateClass) })
		})
	})
	if err != nil {
		return nil, err
	}
	found := readings{"rate": float64(s.size) / bound.wall, "claims-cpu": bound.cpu / float64(s.size) * 1000}
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
