// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Conformance runs the tests of controller-runtime against NewCache, and prints how many pass:
//
//	go run ./controllerruntime/conformance
//	go run ./controllerruntime/conformance pkg/cache
//
// It copies the module of controller-runtime that go.mod names to a temporary folder, and replaces
// cache.New in the tests, and in package cluster, by NewCache. Nothing else of the tests changes.
// Each package gets a control plane of its own, by setpoint-controlplane, with the controller of
// service accounts: their admission requires it. A test that fails must be in the list of main.go,
// with its reason, and a test in that list must fail.
package main
