// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package handlername names handlers of events in logs, as client-go does.
package handlername
