// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"time"

	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices. Upstream has no number of workers: it starts an operation
// for each volume.
// Source: k8s.io/kubernetes/pkg/controller/volume/attachdetach, DefaultTimerConfig, and its config/v1alpha1;
// k8s.io/kubernetes/pkg/volume/csi, csiTimeout.
func Defaults() Options {
	return Options{Workers: 20, SyncPeriod: time.Minute, UnmountWait: 6 * time.Minute, OperationLimit: 2 * time.Minute}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "attachdetach", Account: "attachdetach-controller",
		Summary:  "attaches volumes to the nodes of the Pods that use them, and detaches them when no Pod does",
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Duration("attach-detach-reconcile-sync-period", &o.SyncPeriod,
					"how often "+Name+" compares every volume with its attachments although nothing has changed").AtLeast(int64(time.Second)),
				controllers.Bool("disable-attach-detach-reconcile-sync", &o.DisableSync,
					"do not compare volumes with their attachments while nothing changes"),
				controllers.Bool("disable-force-detach-on-timeout", &o.DisableForceDetachOnTimeout,
					"never detach a volume by force from a node that is not ready; only the taint node.kubernetes.io/out-of-service does"),
			}
		},
	}, New)
}
