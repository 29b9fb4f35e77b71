// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplanetest gives tests a real control plane: etcd, kube-apiserver
// and kube-scheduler in a process of their own, with simulated nodes if asked.
//
// The binaries are those of "make build" and "make kubectl". They are found by the
// environment variables SETPOINT_CONTROLPLANE_BIN, SETPOINT_BIN and KUBECTL, or
// else in the folder bin at the root of the checkout. A binary that is missing
// fails the test and says what to do; with "go test -short" the test is skipped.
//
// Starting a control plane takes some seconds. The tests of a package share one:
//
//	func TestMain(m *testing.M) { os.Exit(controlplanetest.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		cluster := controlplanetest.Shared(t, controlplanetest.Options{Nodes: 1})
//		namespace := cluster.Namespace(t)
//		...
//	}
package controlplanetest
