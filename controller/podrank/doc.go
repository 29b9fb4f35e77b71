// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podrank tells which Pods of an owner are deleted first when it has too many: those
// that are missed least, in the order of ReplicaSets.
//
//	rank := podrank.New(podrank.Options{Now: time.Now()})
//	for _, pod := range owned.Surplus(pods, len(pods)-wanted, rank) { ... }
//
// A reason of your own goes before it in [owned.Surplus].
package podrank
