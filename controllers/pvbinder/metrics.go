// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// unknownPlugin is the value of a label for a volume or an operation whose plugin is not known.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume/metrics.
const unknownPlugin = "N/A"

// Values of the label operation_name.
const (
	operationProvision = "provision"
	operationDelete    = "delete"
)

// binderMetrics are the metrics of claims and volumes.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume/metrics, and
// k8s.io/kubernetes/pkg/volume/util, RecordOperationLatencyMetric.
type binderMetrics struct {
	controllers.Metrics

	classified, notClassified *prometheus.CounterVec
	errors, errorsBefore      *prometheus.CounterVec // the same count under the name before 1.36
	seconds                   *prometheus.HistogramVec

	operations operations
}

func newBinderMetrics() *binderMetrics {
	m := &binderMetrics{}
	m.classified = m.Counter("retroactive_storageclass_total", "Claims that were given the default storage class after their creation, failed attempts included.")
	m.notClassified = m.Counter("retroactive_storageclass_errors_total", "Failed attempts to give a claim the default storage class after its creation.")
	m.classified.WithLabelValues()
	m.notClassified.WithLabelValues()
	m.errors = m.Counter("volume_operation_errors_total", "Failed attempts to make or delete a volume.", "plugin_name", "operation_name")
	m.errorsBefore = m.Counter("volume_operation_total_errors", "Failed attempts to make or delete a volume.", "plugin_name", "operation_name")
	m.seconds = m.Histogram("volume_operation_total_seconds", "Time until a volume is made and bound, or deleted.",
		[]float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}, "plugin_name", "operation_name")
	return m
}

// classify counts an attempt to give a claim the default class.
func (m *binderMetrics) classify(err error) {
	m.classified.WithLabelValues().Inc()
	if err != nil {
		m.notClassified.WithLabelValues().Inc()
	}
}

// fails counts a failure of the operation for an object, if one is under way.
func (m *binderMetrics) fails(o object.Object) {
	if op, underWay := m.operations.get(object.KeyOf(o)); underWay && op.uid == o.GetUID() {
		m.errors.WithLabelValues(op.plugin, op.name).Inc()
		m.errorsBefore.WithLabelValues(op.plugin, op.name).Inc()
	}
}

// succeeds observes the time of the operation for a key, if one is under way.
func (m *binderMetrics) succeeds(key object.Key) {
	if op, underWay := m.operations.end(key); underWay {
		m.seconds.WithLabelValues(op.plugin, op.name).Observe(time.Since(op.start).Seconds())
	}
}

// operation is the making of a volume for a claim, or the deletion of a volume.
type operation struct {
	uid          types.UID // of the claim or the volume
	plugin, name string
	start        time.Time
}

// operations are the operations under way: of claims by namespace and name, of volumes by name. It
// is safe for concurrent use.
type operations struct {
	mu  sync.Mutex
	all map[object.Key]operation
}

// begin notes the start of an operation, unless it is noted already.
func (o *operations) begin(of object.Object, plugin, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := object.KeyOf(of)
	if o.all[key].uid == of.GetUID() {
		return
	}
	if o.all == nil {
		o.all = map[object.Key]operation{}
	}
	o.all[key] = operation{of.GetUID(), plugin, name, time.Now()}
}

func (o *operations) get(key object.Key) (operation, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	op, underWay := o.all[key]
	return op, underWay
}

func (o *operations) end(key object.Key) (operation, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	op, underWay := o.all[key]
	delete(o.all, key)
	return op, underWay
}

// deleterName returns what deletes a volume, as metrics name it: a plugin, or the
// provisioner of the class. The annotation of a volume may hold any name, and would make any number
// of series.
func (b *binder) deleterName(volume *corev1.PersistentVolume) string {
	plugin, err := deleterOf(volume)
	if err != nil {
		return unknownPlugin
	}
	if plugin != "" {
		return plugin
	}
	class, err := b.classes.Get(object.Key{Name: volumes.ClassOfVolume(volume)})
	if err != nil {
		return unknownPlugin
	}
	if driver := volumes.DriverOf(class.Provisioner); driver != "" {
		return driver
	}
	return class.Provisioner
}

// The indexes below count claims and volumes for metrics. Each of their values joins the values of
// labels, so that a scrape reads one count for each series and decodes nothing.
const separator = "\x00"

// count declares the metrics that count claims and volumes.
func (b *binder) count() {
	claims := cache.NewIndex(b.claims, func(item cache.Item[*corev1.PersistentVolumeClaim]) ([]string, error) {
		claim, err := item.Object()
		if err != nil {
			return nil, err
		}
		attributes := ""
		if name := claim.Spec.VolumeAttributesClassName; name != nil {
			attributes = *name
		}
		bound := claim.Status.Phase == corev1.ClaimBound
		return []string{strings.Join([]string{strconv.FormatBool(bound), claim.Namespace, volumes.ClassOf(claim), attributes}, separator)}, nil
	})
	// The first label is the volume's plugin, and the second its mode. Both counts of a volume are in
	// one index, so their values begin differently.
	const byPlugin = "plugin"
	all := cache.NewIndex(b.volumes, func(item cache.Item[*corev1.PersistentVolume]) ([]string, error) {
		volume, err := item.Object()
		if err != nil {
			return nil, err
		}
		plugin := volumes.PluginOf(volume)
		if plugin == "" {
			plugin = unknownPlugin
		}
		bound := volume.Status.Phase == corev1.VolumeBound
		return []string{
			strings.Join([]string{byPlugin, plugin, string(volumes.ModeOf(volume.Spec.VolumeMode))}, separator),
			strings.Join([]string{strconv.FormatBool(bound), volume.Spec.StorageClassName}, separator),
		}, nil
	})
	ofClaims := func(of string) func(set func(float64, ...string)) {
		return func(set func(float64, ...string)) { countOf(claims, b.claims.Snapshot(), of, set) }
	}
	ofVolumes := func(of string) func(set func(float64, ...string)) {
		return func(set func(float64, ...string)) { countOf(all, b.volumes.Snapshot(), of, set) }
	}
	labels := []string{"namespace", "storage_class", "volume_attributes_class"}
	b.metrics.GaugesFunc("pv_collector_bound_pvc_count", "Claims that are bound.", labels, ofClaims("true"))
	b.metrics.GaugesFunc("pv_collector_unbound_pvc_count", "Claims that are not bound.", labels, ofClaims("false"))
	b.metrics.GaugesFunc("pv_collector_total_pv_count", "Volumes.", []string{"plugin_name", "volume_mode"}, ofVolumes(byPlugin))
	b.metrics.GaugesFunc("pv_collector_bound_pv_count", "Volumes that are bound.", []string{"storage_class"}, ofVolumes("true"))
	b.metrics.GaugesFunc("pv_collector_unbound_pv_count", "Volumes that are not bound.", []string{"storage_class"}, ofVolumes("false"))
}

// countOf sets the series of the values of an index that begin with of.
func countOf[T object.Object](index cache.Index[T], s cache.Snapshot[T], of string, set func(float64, ...string)) {
	for value, n := range index.Values(s) {
		if first, labels, _ := strings.Cut(value, separator); first == of {
			set(float64(n), strings.Split(labels, separator)...)
		}
	}
}
