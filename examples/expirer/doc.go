// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Expirer is a controller that deletes each ConfigMap when its time is over. The time is in an
// annotation:
//
//	kubectl create configmap note
//	kubectl annotate configmap note example.com/expires-after=10m
//
// Its tests show the three ways to test a controller, and docs/testing.md explains them.
package main
