// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package completion completes arguments of a command from the cluster of its kubeconfig when the
// user types Tab: kinds, names of objects, namespaces.
//
// A [Cluster] asks the server. [Listed] makes a completion of cobra of such a question, for
// elements of a list with commas; [Objects] answers for the names of objects. No completion takes
// longer than [Time], and none prints an error into the command line of the user: a shell with
// active help shows why there is nothing to choose.
package completion
