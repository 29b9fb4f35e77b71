// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filelock locks files between processes. The kernel drops a lock when its file is
// closed, and so when the process ends, however it ends.
package filelock
