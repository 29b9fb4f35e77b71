// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endtoend reads the page of Setpoint in a real Chromium, as a person would.
//
// Most tests are about pages of a stage in memory. On Linux others are about a real cluster: "setpoint up", "setpoint manager"
// and "setpoint ui" run as processes, and kubectl changes objects. One cluster serves all of these.
//
// One browser serves all tests of the package. Without a Chromium the tests are skipped and say how to install it;
// with CI=true they fail.
package endtoend
