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
//	go run ./hack/conformance -assets DIRECTORY -adapters adapters
//	go run ./hack/conformance -assets DIRECTORY -adapters adapters trust-manager
//
// With -adapters, the tests of operators run, twice each: with NewCache of package
// adapters/controllerruntime in the place of controller-runtime's cache, and as they are. The lines
// that differ are in package internal/operators, and are printed. It is an error if the operator makes a cache
// in a file without such a line. Both runs have the same versions of all modules, at least those of the
// adapters. The counts of both are printed beside each other, with the names of the tests that failed. The
// status is 1 if fewer tests pass with NewCache. The tests of one package may take 15 minutes; those of
// cluster-api take most of an hour on two cores, and
//
//	go run ./hack/conformance -assets DIRECTORY -adapters adapters -packages ./controllers/clustercache,./core/... cluster-api
//
// runs some.
//
// Processes that the tests leave behind are ended, on Linux.
package main
