// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decode turns what the cache stores of an object into the object that a program of
// another library reads: typed, unstructured, or its metadata alone. The adapters share it.
package decode
