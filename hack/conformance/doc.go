// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Conformance runs the tests of other projects on parts of Setpoint, and prints how many pass.
//
//	go run ./hack/conformance -assets DIRECTORY
//	go run ./hack/conformance -assets DIRECTORY envtest
//
// The directory has kube-apiserver, etcd and kubectl, and is KUBEBUILDER_ASSETS of the tests:
// that of "setpoint assets", or one with other binaries, to compare with. Arguments choose suites,
// see suites.go; without any, all run. A suite is the tests of some packages of a module, in the
// version that is named there. The module is downloaded, copied to a temporary directory, and is
// not changed.
//
// A line is printed for each package: what passed, failed and was skipped. Specs of Ginkgo are
// counted where a package has them, and tests of Go elsewhere. The status is 1 if anything failed
// or did not compile; what go test printed about that package then follows.
//
// Processes that the tests leave behind are ended, on Linux.
package main
