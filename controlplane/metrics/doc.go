// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics serves the three APIs that autoscalers and kubectl top read, for
// simulated nodes: metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io.
//
// # Where the values come from
//
// Nothing is measured. The annotations of an object state what it uses, and a Value is
// what one annotation states: a constant, a course over time, or a part of a load that
// the Pods of an owner share. ParseValue has the grammar.
//
//   - metrics.k8s.io: UsageCPU and UsageMemory on a Pod, for all its containers or for
//     one. A container without them uses half of what it requests. A Node uses what its
//     Pods use.
//   - custom.metrics.k8s.io: annotations that begin with MetricPrefix, on a Pod or on
//     any other object.
//   - external.metrics.k8s.io: the same annotations on a ConfigMap. Each such ConfigMap
//     is one series, and its labels are the labels of the series.
//
// # How the API server reaches them
//
// A Server listens on a port of 127.0.0.1. For each API it registers an APIService, all
// of which name one Service of the type ExternalName that stands for 127.0.0.1. The API
// server verifies the certificate of the Server, and the Server accepts no other client
// than the API server, which has authenticated and authorized the request before. So the
// Server itself has no rights to check.
//
// Discovery lists each API as soon as the API answers. An APIService whose
// server is away would make every discovery fail in part, so the Server removes its own
// when it ends, and Remove removes those that a killed process has left behind.
package metrics
