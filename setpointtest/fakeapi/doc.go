// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is an API server in memory, for unit tests.
package fakeapi
