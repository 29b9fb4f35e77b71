// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstreamtest compares mechanisms of the library with the code of Kubernetes that
// they stand for. The root module must not require k8s.io/kubernetes, so these tests live in
// the module of the control plane. The package has tests only.
//
// A test generates objects, passes each to both sides and compares the results. It prints the
// seed of what it generated, and -seed repeats it.
//
// Some functions of Kubernetes are not exported. Linknames make them callable here; the file
// linkname.s has the compiler accept their declarations without bodies.
package upstreamtest
