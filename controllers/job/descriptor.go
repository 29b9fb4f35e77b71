// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"time"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Sources: k8s.io/kubernetes/pkg/controller/job/config/v1alpha1, and MaxPodCreateDeletePerSync,
// MaxUncountedPods and SyncJobBatchPeriod in pkg/controller/job.
func Defaults() Options {
	return Options{Workers: 5, Burst: 500, MaxUncounted: 500, Batch: time.Second}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "job",
		Summary:  "runs Pods until as many have succeeded as each Job wants",
		ActsOn:   []object.Resource{jobs},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-job-syncs", &o.Workers, "how many Jobs job-controller works on at a time").AtLeast(1),
			}
		},
		Gates: func(o *Options) []controllers.Gate {
			return []controllers.Gate{
				{Name: "WorkloadWithJob", Set: func(on bool) { o.Scheduling = on }},
				{Name: "MutableSchedulingDirectivesForSuspendedJobs", Set: func(on bool) { o.KeepStartTime = !on }},
			}
		},
	}, New)
}
