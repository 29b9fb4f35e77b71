// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/workqueue"
)

// followStorage keeps claims, PersistentVolumes and CSIDrivers. It returns when all of them are
// listed, and false if ctx has ended before. They come before Pods and before anything is written:
// a volume whose claim was not listed yet would not be in use.
func (s *simulation) followStorage(ctx context.Context, running *sync.WaitGroup) bool {
	for _, follow := range []func(context.Context, func()){s.followVolumeClaims, s.followVolumes, s.followDrivers} {
		listed := make(chan struct{})
		running.Go(func() { follow(ctx, sync.OnceFunc(func() { close(listed) })) })
		select {
		case <-listed:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (s *simulation) followVolumeClaims(ctx context.Context, listed func()) {
	api := s.client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll)
	follow(ctx, feed[*corev1.PersistentVolumeClaim]{
		what: "persistentvolumeclaims",
		list: func(ctx context.Context, options metav1.ListOptions) ([]*corev1.PersistentVolumeClaim, string, error) {
			list, err := api.List(ctx, options)
			if err != nil {
				return nil, "", err
			}
			return pointers(list.Items), list.ResourceVersion, nil
		},
		watch: api.Watch,
		replace: func(claims []*corev1.PersistentVolumeClaim) {
			s.store.replaceVolumeClaims(claims)
			s.wake(s.store.waitingPods())
			listed()
		},
		change: func(claim *corev1.PersistentVolumeClaim, gone bool) {
			if gone {
				s.store.dropVolumeClaim(claim)
				return
			}
			s.wake(s.store.putVolumeClaim(claim))
		},
	}, s.log)
}

func (s *simulation) followVolumes(ctx context.Context, listed func()) {
	api := s.client.CoreV1().PersistentVolumes()
	follow(ctx, feed[*corev1.PersistentVolume]{
		what: "persistentvolumes",
		list: func(ctx context.Context, options metav1.ListOptions) ([]*corev1.PersistentVolume, string, error) {
			list, err := api.List(ctx, options)
			if err != nil {
				return nil, "", err
			}
			return pointers(list.Items), list.ResourceVersion, nil
		},
		watch: api.Watch,
		replace: func(pvs []*corev1.PersistentVolume) {
			s.store.replaceVolumes(pvs)
			s.wake(s.store.waitingPods())
			listed()
		},
		change: func(pv *corev1.PersistentVolume, gone bool) {
			if gone {
				s.store.dropVolume(pv)
				return
			}
			s.wake(s.store.putVolume(pv))
		},
	}, s.log)
}

func (s *simulation) followDrivers(ctx context.Context, listed func()) {
	api := s.client.StorageV1().CSIDrivers()
	follow(ctx, feed[*storagev1.CSIDriver]{
		what: "csidrivers",
		list: func(ctx context.Context, options metav1.ListOptions) ([]*storagev1.CSIDriver, string, error) {
			list, err := api.List(ctx, options)
			if err != nil {
				return nil, "", err
			}
			return pointers(list.Items), list.ResourceVersion, nil
		},
		watch: api.Watch,
		replace: func(drivers []*storagev1.CSIDriver) {
			s.store.replaceDrivers(drivers)
			s.wake(s.store.waitingPods())
			listed()
		},
		change: func(driver *storagev1.CSIDriver, gone bool) {
			s.store.putDriver(driver, gone)
			s.wake(s.store.waitingPods())
		},
	}, s.log)
}

// wake has Pods played.
func (s *simulation) wake(pods []key) { s.queue.AddWith(workqueue.Add{}, pods...) }
