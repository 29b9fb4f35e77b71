// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics gives what informers say of themselves to Prometheus.
//
//	registry.MustRegister(metrics.Informers(factory))
//
// A collector reads the state when it is asked, and keeps none of its own: nothing is
// counted twice, and a program that nobody scrapes pays nothing. The series are
// bounded: by kinds, by handlers, and by the reasons that the cache package knows.
// The names begin with setpoint_; docs/metrics.md lists them.
package metrics
