// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"time"

	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Sources: k8s.io/kubernetes/pkg/controller/podgc/config/v1alpha1, and gcCheckPeriod and
// quarantineTime in pkg/controller/podgc. Upstream has no Workers: it removes all at once that
// have ended, and the others one by one.
func Defaults() Options {
	return Options{Workers: 16, TerminatedPodThreshold: 12500, Period: 20 * time.Second, Quarantine: 40 * time.Second}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "podgc", Account: "pod-garbage-collector",
		Summary:  "removes Pods that no other component removes: orphans, too many ended ones",
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("terminated-pod-gc-threshold", &o.TerminatedPodThreshold, "how many Pods that have ended may stay; with 0 or less all may"),
			}
		},
	}, New)
}
