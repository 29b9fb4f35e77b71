// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics exports the status of informers and work queues to Prometheus.
//
//	registry.MustRegister(metrics.Informers(factory))
//	registry.MustRegister(metrics.Queues(func() []workqueue.Stats { return []workqueue.Stats{queue.Stats()} }))
//
// A collector reads the status at each scrape and has no state of its own: nothing is counted
// twice, and a program that is not scraped pays nothing. The number of series is bounded by
// kinds, handlers, and the reasons that package cache has. Names begin with setpoint_; those of
// work queues are the names of Kubernetes.
package metrics
