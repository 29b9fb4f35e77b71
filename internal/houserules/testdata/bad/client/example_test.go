// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

func Example() {}
