// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/metrics"
)

// Informers that say the same of themselves, of one kind in two types or with a transform
// each, are one series: two would fail the whole scrape.
func TestInformersThatSayTheSameAreOneSeries(t *testing.T) {
	c, err := client.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		t.Fatal(err)
	}
	factory := cache.NewFactory(c, nil)
	same := func(p *corev1.Pod) (*corev1.Pod, error) { return p, nil }
	for _, i := range []cache.SharedInformer[*corev1.Pod]{
		cache.Informer[*corev1.Pod](factory),
		cache.Informer[*corev1.Pod](factory, cache.Transform(same)),
		cache.Informer[*corev1.Pod](factory, cache.Transform(same)),
	} {
		if _, err := i.AddHandler(func(cache.Event[*corev1.Pod]) {}, cache.HandlerOptions{Name: "one"}); err != nil {
			t.Fatal(err)
		}
	}
	cache.Informer[*unstructured.Unstructured](factory, cache.OfKind(corev1.SchemeGroupVersion.WithKind("Pod")))

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.Informers(factory))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "setpoint_informer_objects" && len(f.GetMetric()) != 2 {
			t.Errorf("%d series: %v", len(f.GetMetric()), f)
		}
	}
}
