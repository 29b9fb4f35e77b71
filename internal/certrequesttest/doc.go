// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certrequesttest makes certificate signing requests for tests.
package certrequesttest
