// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connections decides which requests to an API server share a connection: those of the
// lease and of reviews must not wait behind those of informers.
package connections
