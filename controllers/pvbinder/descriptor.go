// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"time"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume/config/v1alpha1.
func Defaults() Options {
	return Options{
		SyncPeriod:      15 * time.Second,
		Provisioning:    true,
		RecycleNFS:      Recycler{Minimum: 300, PerGi: 30},
		RecycleHostPath: Recycler{Minimum: 60, PerGi: 30},
	}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "persistentvolume-binder", Account: "persistent-volume-binder",
		Summary:  "binds claims to volumes, has volumes made for them, and reclaims volumes",
		ActsOn:   []object.Resource{claimKind, volumeKind},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Duration("pvclaimbinder-sync-period", &o.SyncPeriod, "how long a claim or volume waits before it is reconciled again and its Event is repeated; each further time is twice as long; less than a second is a second"),
				controllers.Bool("enable-dynamic-provisioning", &o.Provisioning, "have volumes made for claims that no free volume fits"),
				controllers.Bool("enable-hostpath-provisioner", &o.HostPath, "make and delete directories below /tmp of this machine as volumes; for tests on a single Node"),
				controllers.String("pv-recycler-pod-template-filepath-nfs", &o.RecycleNFS.Template, "a file with the Pod that empties NFS volumes"),
				controllers.Int("pv-recycler-minimum-timeout-nfs", &o.RecycleNFS.Minimum, "for how many seconds the Pod that empties an NFS volume may run, at least"),
				controllers.Int("pv-recycler-increment-timeout-nfs", &o.RecycleNFS.PerGi, "for how many seconds the Pod that empties an NFS volume may run for each Gi"),
				controllers.String("pv-recycler-pod-template-filepath-hostpath", &o.RecycleHostPath.Template, "a file with the Pod that empties hostPath volumes; for tests on a single Node"),
				controllers.Int("pv-recycler-minimum-timeout-hostpath", &o.RecycleHostPath.Minimum, "for how many seconds the Pod that empties a hostPath volume may run, at least"),
				controllers.Int("pv-recycler-timeout-increment-hostpath", &o.RecycleHostPath.PerGi, "for how many seconds the Pod that empties a hostPath volume may run for each Gi"),
			}
		},
	}, New)
}
