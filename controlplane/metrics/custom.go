// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	customv1beta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
)

// handleCustom serves custom.metrics.k8s.io: one metric of one object, or, with the name
// "*", of all objects of a kind that a selector selects.
func (s *Server) handleCustom(mux *http.ServeMux) {
	root := "GET " + customMetrics.path()
	mux.Handle(root, resourceList(customMetrics.version))
	mux.Handle(root+"/{resource}/{name}/{metric}", answer(s.custom))
	mux.Handle(root+"/namespaces/{namespace}/{resource}/{name}/{metric}", answer(s.custom))
	// A metric of the namespace itself.
	mux.Handle(root+"/namespaces/{name}/metrics/{metric}", answer(func(r *http.Request) (any, error) {
		r.SetPathValue("resource", "namespaces")
		return s.custom(r)
	}))
}

// customRequest is a request for one metric.
type customRequest struct {
	resource  schema.GroupResource
	namespace string // "" for objects without
	name      string // or customv1beta2.AllObjects
	metric    string
	selector  labels.Selector // of objects, if all are requested
}

// described is an object and its value.
type described struct {
	reference corev1.ObjectReference
	milli     int64
}

func (s *Server) custom(r *http.Request) (any, error) {
	q := customRequest{
		resource:  schema.ParseGroupResource(r.PathValue("resource")),
		namespace: r.PathValue("namespace"),
		name:      r.PathValue("name"),
		metric:    r.PathValue("metric"),
	}
	wanted, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	if q.selector = labels.Everything(); q.name == customv1beta2.AllObjects {
		q.selector = wanted.labels
	}
	ofMetric, err := labels.Parse(r.URL.Query().Get("metricLabelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metricLabelSelector: %v", err))
	}

	var found []described
	if q.resource == (schema.GroupResource{Resource: "pods"}) {
		found = s.customOfPods(q)
	} else if found, err = s.customOfObjects(r.Context(), q); err != nil {
		return nil, err
	}
	switch {
	case len(found) == 0:
		return nil, q.notFound()
	case !ofMetric.Matches(labels.Set{}):
		return nil, notFound("metric %s has no labels, and the selector %q of the metric requires some", q.metric, ofMetric)
	}
	return s.customList(q.metric, found), nil
}

// customOfPods returns the metric of Pods that run.
func (s *Server) customOfPods(q customRequest) []described {
	var found []described
	state := s.snapshot(q.namespace)
	for _, pod := range state.pods {
		if q.name != customv1beta2.AllObjects && q.name != pod.Name ||
			pod.Status.Phase != corev1.PodRunning || !q.selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		v, err := ParseValue(pod.Annotations[MetricPrefix+q.metric])
		if err != nil || !v.Exists() {
			continue // what is wrong, an Event of the Pod says
		}
		since := pod.CreationTimestamp.Time
		if pod.Status.StartTime != nil {
			since = pod.Status.StartTime.Time
		}
		found = append(found, described{
			reference: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name},
			milli:     state.valueOf(pod, v, since),
		})
	}
	return found
}

// customOfObjects reads objects of any other kind from the API server.
func (s *Server) customOfObjects(ctx context.Context, q customRequest) ([]described, error) {
	objects, err := s.objects.read(ctx, q)
	if err != nil {
		return nil, err
	}
	var found []described
	for i := range objects {
		o := &objects[i]
		v, ok, err := metricOf(o, q.metric)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, described{
				reference: corev1.ObjectReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()},
				milli:     v.At(s.now().Sub(o.GetCreationTimestamp().Time)),
			})
		}
	}
	return found, nil
}

// notFound says that there is no such metric, and how to make one.
func (q customRequest) notFound() error {
	objects := q.resource.String() + " " + q.name + " has no"
	if q.name == customv1beta2.AllObjects {
		objects = "none of the " + q.resource.String() + " has a"
		if !q.selector.Empty() {
			objects = fmt.Sprintf("none of the %s with labels %s has a", q.resource, q.selector)
		}
	}
	if q.namespace != "" {
		objects = "namespace " + q.namespace + ": " + objects
	}
	return notFound("%s metric %s; the annotation %s gives it one", objects, q.metric, MetricPrefix+q.metric)
}

func (s *Server) customList(metric string, found []described) customv1beta2.MetricValueList {
	slices.SortFunc(found, func(a, b described) int { return cmp.Compare(a.reference.Name, b.reference.Name) })
	list := customv1beta2.MetricValueList{
		TypeMeta: metav1.TypeMeta{APIVersion: customMetrics.version.String(), Kind: "MetricValueList"},
	}
	for _, d := range found {
		list.Items = append(list.Items, customv1beta2.MetricValue{
			DescribedObject: d.reference,
			Metric:          customv1beta2.MetricIdentifier{Name: metric},
			Timestamp:       metav1.NewTime(s.now()),
			Value:           *resource.NewMilliQuantity(d.milli, resource.DecimalSI),
		})
	}
	return list
}
