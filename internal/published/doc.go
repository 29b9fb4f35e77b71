// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package published writes the kubeconfig of a cluster to a file that the user names.
//
// The file exists for as long as the cluster can be used, and a process that waits for it may
// rely on that. [Claim] therefore removes, at the start, one that an earlier run left behind.
// It replaces no file with other clusters, which may be all that a user has, and no file of a
// cluster that still runs: the process that wrote it holds a lock on it, which ends with the
// process, however that ends.
package published
