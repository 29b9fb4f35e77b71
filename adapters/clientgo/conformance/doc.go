// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command conformance runs client-go's own tests of its shared informer and of its indexes on
// the informers of this project, and prints how many pass:
//
//	go run ./clientgo/conformance
//
// It reads the tests from the module of client-go and gives them to the compiler in an overlay.
// Each test that does not apply is in a list with its reason. The command fails if
// another one fails, if one of the list passes, or if a test of the list is no longer there.
package main
