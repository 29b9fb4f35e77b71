// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics gives what informers and work queues say of themselves to Prometheus.
//
//	registry.MustRegister(metrics.Informers(factory))
//	registry.MustRegister(metrics.Queues(func() []workqueue.Stats { return []workqueue.Stats{queue.Stats()} }))
//
// A collector reads the state when it is asked, and keeps none of its own: nothing is
// counted twice, and a program that nobody scrapes pays nothing. The series are
// bounded: by kinds, by handlers, and by the reasons that the cache package knows.
// The names begin with setpoint_, but for those of work queues, which Kubernetes has named
// before.
package metrics
