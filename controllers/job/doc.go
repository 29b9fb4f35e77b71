// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package job runs Pods until as many have succeeded as each Job wants.
package job
