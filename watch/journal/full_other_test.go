// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package journal

func fillDisk(string) error { return nil }
