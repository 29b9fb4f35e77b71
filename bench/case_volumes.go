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

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// volumesCase is about claims that get volumes, which the simulated driver makes. attachCase is about
// attaching them.
var volumesCase = scaleCase{
	what:        "claims that are provisioned for at once",
	size:        5_000,
	nodes:       1, // the driver comes with the nodes
	controllers: []string{"serviceaccount-controller", "persistentvolume-binder-controller"},
	measure:     measureVolumes,
	plain:       measurePlainClaims,
	lines: func(int) []caseLine {
		return []caseLine{
			// Either of the two aims is enough: no manager can be faster than the server. The plain clients write
			// what the driver and a manager write for each claim.
			{name: "volumes-claims-bound-per-second", unit: perSecond, reading: "rate", aim: aim{least: 5}},
			{name: "volumes-claims-vs-plain-clients", unit: perSecond, reading: "rate", aim: aim{least: 0.9}, plain: true},
			{name: "volumes-cpu-per-1000-claims", unit: "s", reading: "claims-cpu", aim: aim{most: 0.5}},
			{name: "volumes-memory-after", unit: "MB", reading: "memory", aim: aim{most: 1. / 3}},
		}
	},
}

// The class of the simulated driver whose volumes are made at once, see docs/simulated-nodes.md.
const immediateClass = "immediate"

func claimName(i int) string { return fmt.Sprint("claim-", i) }

func measureVolumes(ctx context.Context, s *scene) (readings, error) {
	claims, err := countBoundClaims(ctx, s.client)
	if err != nil {
		return nil, err
	}
	bound, err := s.work(ctx, "claims", func() error {
		err := s.each(ctx, s.size, func(ctx context.Context, i int) error { return s.createClaim(ctx, i, immediateClass) })
		if err != nil {
			return err
		}
		return claims.reach(ctx, s.size, s.manager.alive)
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

// countBoundClaims counts the claims that become bound. It begins now and ends with ctx.
func countBoundClaims(ctx context.Context, c *client.Client) (*eventCounter, error) {
	_, version, err := client.For[*corev1.PersistentVolumeClaim](c).List(ctx, client.Selection{})
	if err != nil {
		return nil, err
	}
	bound := map[string]bool{}
	p := &eventCounter{
		client:    c,
		resource:  object.Resource{Version: "v1", Plural: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true},
		selection: client.Selection{WithoutManagedFields: true},
		version:   string(version),
		count: func(event wire.Event, encoding wire.Encoding) (int, string, error) {
			var claim corev1.PersistentVolumeClaim
			if err := encoding.Decode(event.Object, &claim); err != nil {
				return 0, "", err
			}
			if claim.Status.Phase != corev1.ClaimBound || bound[claim.Name] {
				return 0, claim.ResourceVersion, nil
			}
			bound[claim.Name] = true
			return 1, claim.ResourceVersion, nil
		},
	}
	p.begin(ctx)
	return p, nil
}

// eventsOfClaim is how many Events there are about each claim: the binder has one that says that it waits for the
// driver, and the driver two, when it begins and when it has made the volume.
const eventsOfClaim = 3

// measurePlainClaims measures how fast the server takes the writes that each claim needs.
func measurePlainClaims(ctx context.Context, s *scene) (readings, error) {
	began := time.Now()
	err := s.each(ctx, s.size, func(ctx context.Context, i int) error {
		// No driver acts on a claim without a class.
		if err := s.createClaim(ctx, i, ""); err != nil {
			return err
		}
		for n := range eventsOfClaim {
			if err := s.createClaimEvent(ctx, i, n); err != nil {
				return err
			}
		}
		return s.bindPlainly(ctx, i)
	})
	return readings{"rate": float64(s.size) / time.Since(began).Seconds()}, err
}

// createClaimEvent creates the n-th Event about a claim.
func (s *scene) createClaimEvent(ctx context.Context, i, n int) error {
	now := metav1.Now()
	_, err := s.plain.CoreV1().Events("default").Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%d", claimName(i), n)},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "default", Name: claimName(i)},
		Reason:         "ExternalProvisioning", Type: corev1.EventTypeNormal, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Message: "Waiting for a volume to be created by the external provisioner 'plain.example.com'.",
	}, metav1.CreateOptions{})
	return err
}

// bindPlainly creates the volume of a claim, asks for it as the binder does, and binds the two.
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
