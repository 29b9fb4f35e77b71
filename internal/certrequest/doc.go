// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certrequest understands certificate signing requests: what is asked for,
// whether it was decided, and whether it has the form that a kubelet's request must
// have. The controllers that approve and that sign share it, so that nothing is
// approved that is then not signed.
package certrequest
