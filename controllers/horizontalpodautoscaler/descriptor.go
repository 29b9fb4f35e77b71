// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"time"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler/config/v1alpha1.
func Defaults() Options {
	return Options{
		Workers:                 5,
		Period:                  15 * time.Second,
		DownscaleStabilization:  5 * time.Minute,
		Tolerance:               0.1,
		CPUInitializationPeriod: 5 * time.Minute,
		InitialReadinessDelay:   30 * time.Second,
	}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "horizontalpodautoscaling", Account: "horizontal-pod-autoscaler",
		Summary:  "scales workloads by their metrics, as HorizontalPodAutoscalers say",
		ActsOn:   []object.Resource{kind},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-horizontal-pod-autoscaler-syncs", &o.Workers, "how many HorizontalPodAutoscalers horizontal-pod-autoscaler-controller works on at a time").AtLeast(1),
				controllers.Duration("horizontal-pod-autoscaler-sync-period", &o.Period, "how often the metrics of a HorizontalPodAutoscaler are read; less than a second is a second"),
				controllers.Duration("horizontal-pod-autoscaler-downscale-stabilization", &o.DownscaleStabilization, "for how long a recommendation keeps the replicas from becoming fewer, where spec.behavior does not say"),
				controllers.Float("horizontal-pod-autoscaler-tolerance", &o.Tolerance, "how far the ratio of a metric to its target may be from 1 without a change of size, where spec.behavior does not say"),
				controllers.Duration("horizontal-pod-autoscaler-cpu-initialization-period", &o.CPUInitializationPeriod, "for how long after the start of a Pod its CPU usage counts only if it was measured after the Pod became ready"),
				controllers.Duration("horizontal-pod-autoscaler-initial-readiness-delay", &o.InitialReadinessDelay, "a Pod that became unready within this time after its start counts as never ready"),
			}
		},
		Gates: func(o *Options) []controllers.Gate {
			return []controllers.Gate{
				{Name: "HPAScaleToZero", Set: func(on bool) { o.KeepZero = !on }},
				{Name: "HPAGeneration", Set: func(on bool) { o.IgnoreGeneration = !on }},
			}
		},
	}, New)
}
