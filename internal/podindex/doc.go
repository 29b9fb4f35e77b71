// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podindex finds Pods by the node that they are bound to. Several controllers
// of one process do, in one informer, and share the index: it costs what it costs
// once.
package podindex
