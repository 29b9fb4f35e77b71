// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourcequota counts what ResourceQuotas limit.
package resourcequota
