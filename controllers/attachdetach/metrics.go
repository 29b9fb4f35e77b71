// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/worlds"
	"github.com/setpoint-io/setpoint/internal/attachable"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// The metrics of kube-controller-manager.
// Source: k8s.io/kubernetes/pkg/controller/volume/attachdetach/metrics.
var (
	inUseMetric = prometheus.NewDesc("storage_count_attachable_volumes_in_use",
		"Measure number of volumes in use", []string{"node", "volume_plugin"}, nil)
	totalMetric = prometheus.NewDesc("attachdetach_controller_total_volumes",
		"Number of volumes in A/D Controller", []string{"plugin_name", "state"}, nil)
	forcedMetric = prometheus.NewDesc("attach_detach_controller_attachdetach_controller_forced_detaches",
		"Number of times the A/D Controller performed a forced detach", []string{"reason"}, nil)
)

// Values of the label state: how many volumes are to be at a node, and how many are or may be.
const (
	stateDesired = "desired_state_of_world"
	stateActual  = "actual_state_of_world"
)

// durationBuckets are the bounds of the histogram, in seconds.
// Source: k8s.io/kubernetes/pkg/volume/util, StorageOperationMetric.
func durationBuckets() []float64 {
	return []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}
}

const durationMetric = "storage_operation_duration_seconds"

// Buckets returns the bounds of each histogram, by its name.
func (r *reconciler) Buckets() map[string][]float64 {
	return map[string][]float64{durationMetric: durationBuckets()}
}

// newDurations returns the histogram of how long attaches and detaches take. A volume is detached when its VolumeAttachment is
// gone, and one of a plugin without an attacher at once.
func newDurations() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: durationMetric, Help: "Storage operation duration", Buckets: durationBuckets(),
	}, []string{"volume_plugin", "operation_name", "status", "migrated"})
}

// took notes how long an operation on a volume has taken, and whether it has failed.
func (r *reconciler) took(of *source, operation string, since time.Time, err error) {
	status := "success"
	if err != nil {
		status = "fail-unknown"
	}
	r.durations.WithLabelValues(pluginOf(of.unique), "volume_"+operation, status, strconv.FormatBool(of.migrated)).Observe(time.Since(since).Seconds())
}

// Values of the label reason.
const (
	reasonTimeout      = "timeout"
	reasonOutOfService = "out-of-service"
)

// Controller is the controller, with its metrics.
type Controller struct {
	loops
	*reconciler
}

// loops is what a manager runs.
type loops interface {
	controller.Runnable
	Loops() []controller.Loop
	Bind(h controller.Host) error
}

// forcedDetaches counts detaches by force. It is safe for concurrent use.
type forcedDetaches struct{ timeout, outOfService atomic.Uint64 }

func (f *forcedDetaches) count(why force) {
	switch why {
	case forceTimeout:
		f.timeout.Add(1)
	case forceOutOfService:
		f.outOfService.Add(1)
	case forceNone:
	}
}

// Describe makes it a prometheus.Collector.
func (r *reconciler) Describe(out chan<- *prometheus.Desc) {
	out <- inUseMetric
	out <- totalMetric
	out <- forcedMetric
	r.durations.Describe(out)
}

// Collect makes it a prometheus.Collector. As with kube-controller-manager, there is a series of
// forced detaches from the first one on.
func (r *reconciler) Collect(out chan<- prometheus.Metric) {
	r.durations.Collect(out)
	type series struct{ first, second string }
	total, inUse := map[series]int{}, map[series]int{}
	for _, where := range r.world.Keys() {
		m, known := r.world.Actual(where)
		if m.wanted {
			total[series{pluginOf(where.volume), stateDesired}]++
		}
		if known == worlds.Present {
			total[series{pluginOf(where.volume), stateActual}]++
		}
	}
	r.eachUse(func(node, plugin string) { inUse[series{node, plugin}]++ })
	for s, n := range total {
		out <- prometheus.MustNewConstMetric(totalMetric, prometheus.GaugeValue, float64(n), s.first, s.second)
	}
	for s, n := range inUse {
		out <- prometheus.MustNewConstMetric(inUseMetric, prometheus.GaugeValue, float64(n), s.first, s.second)
	}
	for reason, n := range map[string]uint64{reasonTimeout: r.forced.timeout.Load(), reasonOutOfService: r.forced.outOfService.Load()} {
		if n > 0 {
			out <- prometheus.MustNewConstMetric(forcedMetric, prometheus.CounterValue, float64(n), reason)
		}
	}
}

// eachUse calls use for each attachable volume of each Pod that has a node. It reads only the Pods
// that have such volumes.
func (r *reconciler) eachUse(use func(node, plugin string)) {
	for name := range r.podsOfInline.Values(r.pods.Snapshot()) {
		for _, item := range r.podsOfInline.Find(name) {
			if pod, err := item.Object(); err == nil && pod.Spec.NodeName != "" {
				use(pod.Spec.NodeName, pluginOf(corev1.UniqueVolumeName(name)))
			}
		}
	}
	for _, item := range r.claims.All() {
		claim, err := item.Object()
		if err != nil || claim.Status.Phase != corev1.ClaimBound {
			continue
		}
		pv, err := r.pvs.Get(object.Key{Name: claim.Spec.VolumeName})
		if err != nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID {
			continue
		}
		of, ok := ofVolume(pv)
		if !ok {
			continue
		}
		for _, item := range r.podsOfClaim.Find(item.Key().String()) {
			pod, err := item.Object()
			if err != nil || pod.Spec.NodeName == "" {
				continue
			}
			for i := range pod.Spec.Volumes {
				if volumes.Uses(pod, &pod.Spec.Volumes[i], claim) {
					use(pod.Spec.NodeName, pluginOf(of.unique))
				}
			}
		}
	}
}

// pluginOf returns the full name of the plugin of a volume.
// Source: k8s.io/kubernetes/pkg/volume/util, GetFullQualifiedPluginNameForVolume.
func pluginOf(volume corev1.UniqueVolumeName) string {
	if driver, _, ok := attachable.SplitCSI(volume); ok {
		return "kubernetes.io/csi:" + driver
	}
	plugin, rest, _ := strings.Cut(string(volume), "/")
	name, _, _ := strings.Cut(rest, "/")
	return plugin + "/" + name
}
