// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// The groups of the metrics APIs. Servers that are added to a cluster serve them.
const (
	resourceMetrics = "metrics.k8s.io"
	customMetrics   = "custom.metrics.k8s.io"
	externalMetrics = "external.metrics.k8s.io"
)

// Patience is how long the metrics of one HorizontalPodAutoscaler may take. A metrics API that does not
// answer holds a worker for as long, at most.
const Patience = 10 * time.Second

var errNoAnswer = fmt.Errorf("no answer within %s: %w", Patience, context.DeadlineExceeded)

// metricsReader reads metrics. It is safe for concurrent use.
type metricsReader struct {
	client *client.Client
	period time.Duration
	silent silences

	mu     sync.Mutex
	custom string    // the version of the custom metrics API
	until  time.Time // until when it is taken for granted
}

func newMetricsReader(c *client.Client, period time.Duration) *metricsReader {
	return &metricsReader{client: c, period: period, silent: silences{since: map[string]time.Time{}, asks: map[string]bool{}}}
}

// read reads all metrics of a HorizontalPodAutoscaler, in the order of the spec. pods selects the Pods
// of its target.
func (r *metricsReader) read(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, pods labels.Selector) []reading {
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, errNoAnswer)
	defer cancel()
	all := make([]reading, len(hpa.Spec.Metrics))
	for i, spec := range hpa.Spec.Metrics {
		began := time.Now()
		all[i] = r.one(ctx, hpa.Namespace, spec, pods)
		all[i].took = time.Since(began)
	}
	return all
}

// one reads one metric.
func (r *metricsReader) one(ctx context.Context, namespace string, spec autoscalingv2.MetricSpec, pods labels.Selector) (is reading) {
	switch {
	case spec.Resource != nil:
		is.pods, is.err = r.resource(ctx, namespace, pods, spec.Resource.Name, "")
	case spec.ContainerResource != nil:
		is.pods, is.err = r.resource(ctx, namespace, pods, spec.ContainerResource.Name, spec.ContainerResource.Container)
	case spec.Pods != nil:
		is.pods, is.err = r.ofPods(ctx, namespace, pods, spec.Pods.Metric)
	case spec.Object != nil:
		is.value, is.err = r.ofObject(ctx, namespace, spec.Object)
	case spec.External != nil:
		is.value, is.err = r.external(ctx, namespace, spec.External.Metric)
	}
	return is
}

// resource reads how much of a resource Pods use.
func (r *metricsReader) resource(ctx context.Context, namespace string, pods labels.Selector, of corev1.ResourceName, container string) (samples, error) {
	body, err := r.get(ctx, r.request(resourceMetrics, "v1beta1", "pods").Namespace(namespace).Param("labelSelector", pods.String()), resourceMetrics)
	if err == nil {
		return decodePodMetrics(body, of, container)
	}
	return samples{}, fmt.Errorf("unable to fetch metrics from resource metrics API: %w", err)
}

// ofPods reads a custom metric of Pods.
func (r *metricsReader) ofPods(ctx context.Context, namespace string, pods labels.Selector, m autoscalingv2.MetricIdentifier) (samples, error) {
	series, err := selectorOfSeries(m)
	if err != nil {
		return samples{}, err
	}
	body, err := r.getCustom(ctx, series, func(version string) *client.Request {
		return r.request(customMetrics, version, "pods").Namespace(namespace).Name("*").Subresource(m.Name).Param("labelSelector", pods.String())
	})
	if err != nil {
		return samples{}, err
	}
	return decodePodValues(body)
}

// ofObject reads a custom metric of an object.
func (r *metricsReader) ofObject(ctx context.Context, namespace string, m *autoscalingv2.ObjectMetricSource) (int64, error) {
	series, err := selectorOfSeries(m.Metric)
	if err != nil {
		return 0, err
	}
	of := schema.FromAPIVersionAndKind(m.DescribedObject.APIVersion, m.DescribedObject.Kind)
	var plural string
	ofNamespace := of.Group == "" && of.Kind == "Namespace"
	if !ofNamespace {
		resource, err := r.client.ResolveAnyVersion(ctx, of)
		if err != nil {
			return 0, fmt.Errorf("unable to fetch metrics from custom metrics API: %w", err)
		}
		plural = resource.String()
	}
	body, err := r.getCustom(ctx, series, func(version string) *client.Request {
		if ofNamespace { // it is the object's own, whatever its name
			return r.request(customMetrics, version, "metrics").Namespace(namespace).Name(m.Metric.Name)
		}
		return r.request(customMetrics, version, plural).Namespace(namespace).Name(m.DescribedObject.Name).Subresource(m.Metric.Name)
	})
	if err != nil {
		return 0, err
	}
	values, err := decodeValues(body)
	switch {
	case err != nil:
		return 0, err
	case len(values) != 1:
		return 0, fmt.Errorf("the custom metrics API server returned %d results when we asked for exactly one", len(values))
	}
	return values[0], nil
}

// external reads an external metric: the sum of its series.
func (r *metricsReader) external(ctx context.Context, namespace string, m autoscalingv2.MetricIdentifier) (int64, error) {
	series, err := selectorOfSeries(m)
	if err != nil {
		return 0, err
	}
	if m.Name == "." || m.Name == ".." || strings.ContainsAny(m.Name, "/%") {
		return 0, fmt.Errorf("the name %q cannot stand in a URL", m.Name)
	}
	body, err := r.get(ctx, r.request(externalMetrics, "v1beta1", m.Name).Namespace(namespace).Param("labelSelector", series), externalMetrics)
	if err != nil {
		return 0, fmt.Errorf("unable to fetch metrics from external metrics API: %w", err)
	}
	values, err := decodeValues(body)
	switch {
	case err != nil:
		return 0, err
	case len(values) == 0:
		return 0, fmt.Errorf("no metrics returned from external metrics API")
	}
	var total int64
	for _, value := range values {
		total = add(total, value)
	}
	return total, nil
}

// selectorOfSeries returns the selector of the series of a metric. Without one, all count.
func selectorOfSeries(m autoscalingv2.MetricIdentifier) (string, error) {
	if m.Selector == nil {
		return labels.Everything().String(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(m.Selector)
	if err != nil {
		return "", selectorError{err}
	}
	return selector.String(), nil
}

// getCustom reads a custom metric of the series that a selector selects. request begins the request in a version of the API.
func (r *metricsReader) getCustom(ctx context.Context, series string, request func(version string) *client.Request) ([]byte, error) {
	version, err := r.customVersion(ctx)
	if err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from custom metrics API: %w", err)
	}
	body, err := r.get(ctx, request(version).Param("metricLabelSelector", series), customMetrics)
	if err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from custom metrics API: %w", err)
	}
	return body, nil
}

// customVersion returns the version in which custom metrics are served: v1beta2, or v1beta1 of an older
// server. It is looked up once a period.
func (r *metricsReader) customVersion(ctx context.Context) (string, error) {
	r.mu.Lock()
	version, until := r.custom, r.until
	r.mu.Unlock()
	if time.Now().Before(until) {
		return version, nil
	}
	body, err := r.get(ctx, r.client.Request(http.MethodGet).Path("/apis/"+customMetrics), customMetrics)
	if err != nil {
		return "", err
	}
	var group metav1.APIGroup
	if err := json.Unmarshal(body, &group); err != nil {
		return "", fmt.Errorf("looking up the versions of %s: %w", customMetrics, err)
	}
	for _, version := range []string{"v1beta2", "v1beta1"} {
		if slices.ContainsFunc(group.Versions, func(v metav1.GroupVersionForDiscovery) bool { return v.Version == version }) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.custom, r.until = version, time.Now().Add(r.period)
			return version, nil
		}
	}
	return "", fmt.Errorf("%s is served neither in v1beta2 nor in v1beta1", customMetrics)
}

// request begins a request to a metrics API.
func (r *metricsReader) request(group, version, plural string) *client.Request {
	return r.client.Request(http.MethodGet).Resource(object.Resource{Group: group, Version: version, Plural: plural, Namespaced: true})
}

// get sends a request to a metrics API.
func (r *metricsReader) get(ctx context.Context, request *client.Request, group string) ([]byte, error) {
	leave, err := r.silent.enter(group)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", request, err)
	}
	answer, err := request.Do(ctx)
	leave(err == nil || !errors.Is(context.Cause(ctx), errNoAnswer))
	switch {
	case err == nil:
		return answer.Body, nil
	case ctx.Err() != nil && context.Cause(ctx) != nil:
		return nil, fmt.Errorf("%s: %w", request, context.Cause(ctx))
	case apierrors.IsNotFound(err) && !client.Absent(err):
		return nil, fmt.Errorf("the server could not find the requested resource (%s): nothing in the cluster serves it in %s", request, group)
	}
	return nil, err
}
