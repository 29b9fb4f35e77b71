// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest

import "testing"

// ForEnvtest has envtest of controller-runtime use the cluster of [Cluster], and returns that
// cluster. Until the test ends, the variables USE_EXISTING_CLUSTER and KUBECONFIG of the process say
// so to envtest, whose Start then starts nothing and connects as administrator. A suite of Ginkgo
// calls it before RunSpecs.
//
// Unlike the servers that envtest starts, the cluster has controllers and nodes: namespaces go,
// owned objects are garbage collected, and the Pods of Deployments get ready. It is shared by all
// tests of the process, and its objects that are in no namespace stay until it ends.
//
// The test must not be a parallel one, since it sets variables of the process.
func ForEnvtest(t testing.TB) *Environment {
	t.Helper()
	cluster := Cluster(t)
	// Source: sigs.k8s.io/controller-runtime, pkg/envtest and pkg/client/config.
	t.Setenv("USE_EXISTING_CLUSTER", "true")
	t.Setenv("KUBECONFIG", cluster.Kubeconfig)
	return cluster
}
