// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import "os"

// tryLock finds every file free: two runs that write one kubeconfig do not notice each other.
func tryLock(*os.File, bool) (bool, error) { return true, nil }
