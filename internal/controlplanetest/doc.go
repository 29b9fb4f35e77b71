// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplanetest gives tests a real control plane: kube-apiserver, etcd and
// kube-scheduler, in a child process, with simulated nodes if a test wants them.
//
// It exists beside the public package setpointtest, whose cluster runs Setpoint's own
// controllers. Tests of these controllers need a control plane without any, and three more
// things that no user of the library needs: to kill the server and start it again, several
// servers on one etcd, and a control plane that the packages of one run lend each other.
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
// or other objects. It starts with the first test that needs it. Under make test the
// package borrows it instead, from the lender that the environment variable
// SETPOINT_TEST_LENDER names (package loan), and gives it back when its tests have passed.
// Objects of the tests are deleted then. A control plane in which an older object has
// changed or is gone is not lent again. A package needs to do nothing for that.
//
// A test that kills the control plane has one of its own, by [Start].
//
// [Cluster.Define] and [Cluster.Undefine] have custom kinds come and go.
//
// Tests connect as administrator. [Cluster.Restricted] connects as a user who has only the
// rights that a controller declares.
//
// No controller runs in it. What the built-in ones do for every Pod is therefore done
// here, unless a test sets Bare: the taint that new nodes have is removed, and
// [Cluster.Namespace] makes the default ServiceAccount.
//
// The binaries are those that the environment variables SETPOINT_CONTROLPLANE_BIN
// and KUBECTL name, as make sets them, else those in the folder bin of the
// repository. A test without them fails and says how to build them; with -short it
// is skipped.
package controlplanetest
