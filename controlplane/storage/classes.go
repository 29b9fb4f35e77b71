// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/volumes"
)

// The StorageClasses that Run creates.
const (
	// DefaultClass is the default class. Its volumes are made when the first Pod that uses the
	// claim has a Node.
	DefaultClass = "standard"

	// ImmediateClass is the class whose volumes are made at once.
	ImmediateClass = "immediate"
)

// Waits between attempts to reach the API server, as those of the simulated nodes.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 2 * time.Second
)

// classes returns the StorageClasses.
func classes() []*storagev1.StorageClass {
	class := func(name string, mode storagev1.VolumeBindingMode, annotations map[string]string) *storagev1.StorageClass {
		return &storagev1.StorageClass{
			ObjectMeta:           metav1.ObjectMeta{Name: name, Annotations: annotations},
			Provisioner:          Driver,
			ReclaimPolicy:        new(corev1.PersistentVolumeReclaimDelete),
			VolumeBindingMode:    &mode,
			AllowVolumeExpansion: new(true),
		}
	}
	return []*storagev1.StorageClass{
		class(DefaultClass, storagev1.VolumeBindingWaitForFirstConsumer, map[string]string{volumes.IsDefaultClass: "true"}),
		class(ImmediateClass, storagev1.VolumeBindingImmediate, nil),
	}
}

// ensureClasses creates the classes that do not exist, and tries again until that or until ctx
// ends. A class of the name that exists already stays as it is.
func ensureClasses(ctx context.Context, api *client.Client, log *slog.Logger) bool {
	server := client.For[*storagev1.StorageClass](api)
	wait := firstWait
	for _, class := range classes() {
		for {
			_, err := server.Create(ctx, class)
			if err == nil || apierrors.IsAlreadyExists(err) {
				break
			}
			log.Debug("creating a storage class; it will be tried again", "class", class.Name, "err", err)
			select {
			case <-ctx.Done():
				return false
			case <-time.After(wait):
			}
			wait = min(2*wait, lastWait)
		}
	}
	return true
}
