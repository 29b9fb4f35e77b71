// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command envtest is an operator on controller-runtime, with tests that use envtest. It gives each
// namespace with the label example.com/pods a ResourceQuota. The tests are as they are everywhere; what
// is Setpoint's is how they run, without a download:
//
//	KUBEBUILDER_ASSETS="$(setpoint assets)" go test ./...
//
// and two lines of the manager, which put the cache of Setpoint under it and have reads see the writes
// before them.
package main
