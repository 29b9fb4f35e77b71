// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	customv1beta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	externalv1beta1 "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
)

// handleExternal serves external.metrics.k8s.io.
func (s *Server) handleExternal(mux *http.ServeMux) {
	root := "GET " + externalMetrics.path()
	mux.Handle(root, resourceList(externalMetrics.version))
	mux.Handle(root+"/namespaces/{namespace}/{metric}", answer(s.external))
}

// external returns the series of a metric: one for each ConfigMap of the namespace that
// has its annotation, and whose labels the selector selects. A metric without a series is
// an empty list, as with other servers of this API.
func (s *Server) external(r *http.Request) (any, error) {
	wanted, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	metric := r.PathValue("metric")
	configMaps, err := s.objects.read(r.Context(), customRequest{
		resource:  schema.GroupResource{Resource: "configmaps"},
		namespace: r.PathValue("namespace"),
		name:      customv1beta2.AllObjects,
		selector:  wanted.labels,
	})
	if err != nil {
		return nil, err
	}
	list := externalv1beta1.ExternalMetricValueList{
		TypeMeta: metav1.TypeMeta{APIVersion: externalMetrics.version.String(), Kind: "ExternalMetricValueList"},
		Items:    []externalv1beta1.ExternalMetricValue{},
	}
	for i := range configMaps {
		o := &configMaps[i]
		v, ok, err := metricOf(o, metric)
		if err != nil {
			return nil, err
		}
		if ok {
			list.Items = append(list.Items, externalv1beta1.ExternalMetricValue{
				MetricName:   metric,
				MetricLabels: o.GetLabels(),
				Timestamp:    metav1.NewTime(s.now()),
				Value:        *resource.NewMilliQuantity(v.At(s.now().Sub(o.GetCreationTimestamp().Time)), resource.DecimalSI),
			})
		}
	}
	return list, nil
}
