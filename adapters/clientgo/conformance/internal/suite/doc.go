// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suite runs tests of client-go on the informers of package clientgo. Its tests come from
// the module of client-go: the command in the folder above puts them here when it builds the
// package, adapted to an informer without the private fields of client-go's. What stays here is
// what they call.
package suite
