// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplanetest gives tests a real control plane: kube-apiserver, etcd
// and kube-scheduler, in a child process, with simulated nodes where asked for.
//
// The tests of a package share one; each test works in a namespace of its own:
//
//	var shared = controlplanetest.Shared{Options: controlplanetest.Options{Nodes: 3}}
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		cluster := shared.Get(t)
//		namespace := cluster.Namespace(t)
//		...
//	}
//
// A package has its control plane for itself, whatever its controllers do to nodes, roles
// or other people's objects. It starts it with the first test that needs it. Under make
// test it borrows it instead, from the lender that the environment variable
// SETPOINT_TEST_LENDER names (package loan), and gives it back when its tests have passed:
// what they have left is deleted, and where an object that was there before has changed or
// is gone, nobody gets that control plane again. A package needs to do nothing for that.
//
// A test that kills the control plane has one of its own, by [Start].
//
// [Cluster.Define] and [Cluster.Undefine] have custom kinds come and go.
//
// Tests connect as administrator, but for those that show what a controller may do
// with the rights that it declares: [Cluster.Restricted] connects as somebody who has
// only these.
//
// No controller runs in it. What the built-in ones do for every Pod is therefore
// done here, unless a test asks for Bare: nodes are freed of the taint that they
// are born with, and [Cluster.Namespace] makes the default ServiceAccount.
//
// The binaries are those that the environment variables SETPOINT_CONTROLPLANE_BIN
// and KUBECTL name, as make sets them, else those in the folder bin of the
// repository. A test without them fails and says how to build them; with -short it
// is skipped.
package controlplanetest
