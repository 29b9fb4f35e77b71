// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/metrics"
)

// What the informers of a factory say of themselves, for Prometheus to scrape.
func Example() {
	c, err := client.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	factory := cache.NewFactory(c, nil)
	cache.Informer[*corev1.Pod](factory)

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.Informers(factory))
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		fmt.Println(f.GetName(), f.GetMetric()[0].GetLabel()[0].GetValue())
	}
	// Output:
	// setpoint_informer_behind_writes pods
	// setpoint_informer_events_total pods
	// setpoint_informer_objects pods
	// setpoint_informer_raw_bytes pods
	// setpoint_informer_stored_bytes pods
	// setpoint_informer_synced pods
	// setpoint_informer_trouble pods
}
