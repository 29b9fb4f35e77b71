// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certrequest parses certificate signing requests: what they request, whether
// they are decided, and whether they have the form that a kubelet's request must have.
// The controllers that approve and that sign share it, so that nothing is approved that
// is then not signed.
package certrequest
