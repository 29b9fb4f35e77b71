// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package records finds the records of the managers of a cluster, for the commands that read them. All of them find managers in one
// way, and show them the same credentials.
package records
