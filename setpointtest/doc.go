// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setpointtest gives tests a real cluster: kube-apiserver, etcd and kube-scheduler,
// simulated nodes that run Pods in name only, and Setpoint's controllers, so that a
// Deployment gets its Pods, what has lost its owner is collected, and a namespace that is
// deleted goes with all that is in it.
//
//	func TestMyControllerScalesUp(t *testing.T) {
//		cluster := setpointtest.Cluster(t)
//		namespace := cluster.Namespace(t)
//		cluster.Apply(t, namespace, "crd.yaml", "deployment.yaml")
//		...
//		web := object.Key{Namespace: namespace, Name: "web"}
//		setpointtest.Await(t, cluster.Client, web, "all replicas are available", func(d *appsv1.Deployment) bool {
//			return d.Status.AvailableReplicas == *d.Spec.Replicas
//		})
//	}
//
// # One cluster for all tests
//
// [Cluster] starts a cluster for the first test that calls it, which takes about five
// seconds, and returns the same one to all tests of the process. It ends with the process,
// even one that is killed. Each test works in a [Environment.Namespace] of its own, which is
// deleted when the test ends; the test waits until it is gone. What is not in a namespace,
// such as a CustomResourceDefinition, stays until the cluster ends: two tests that make
// ClusterRoles give them different names.
//
// go test makes a process of each package. To have all packages share a cluster, start one
// around them:
//
//	setpoint up -- go test ./...
//
// The environment variable SETPOINT_TEST_KUBECONFIG names that cluster; setpoint up sets it for
// its command. Tests do not use the cluster of KUBECONFIG, which may be in production.
//
// A test that needs other nodes, feature gates or no controllers, or that breaks the
// cluster, has one for itself: [Own].
//
// # Suites with envtest
//
// A suite that uses envtest of controller-runtime has servers without controllers. With
// [ForEnvtest] it uses the cluster of this package, and is otherwise unchanged.
//
// # Running a controller
//
// [Run] runs a manager, or a whole program, until the test ends. It also serves tests without a
// cluster, in a bubble of testing/synctest with package fakeapi.
//
// # The rights of a controller
//
// [Environment.Config] is an administrator's. A controller is better tested with the rights
// that it will have: [Restricted] returns a configuration with those rights and no others.
//
// # Waiting
//
// [Await] waits for one object, [AwaitGone] for its end, and [Eventually] for anything else.
// None of them waits for a time. Each fails the test after [Patience], and says what it
// waited for and what it saw last.
//
// # The programs
//
// A cluster is the program setpoint, which runs setpoint-controlplane. "make build" in a
// checkout of Setpoint builds both, into its folder bin. They are looked for at
// $SETPOINT_BIN, in a folder bin beside the test or above it, up to the root of its
// module, and in PATH. A test without them fails, and says so: a test that is skipped
// because something is missing is never run. With -short, tests that need a cluster are
// skipped.
package setpointtest
