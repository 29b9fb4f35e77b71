// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endtoend reads the page of Setpoint in a real Chromium, as a person would.
//
// One browser serves all tests of the package. Without a Chromium the tests are skipped and say how to install it;
// with CI=true they fail.
package endtoend
