// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loan lets the tests of many packages use few control planes.
//
// The program that runs the tests has a [Lender], and says in the environment where it
// listens. The tests of a package borrow a control plane, have it for themselves, and give
// it back for the next package. A control plane starts when one is requested and none is
// free, so there are as many as packages test at once.
//
// A loan is a connection to a Unix socket. The borrower writes one line, the [Kind] that it
// needs, and reads one, the [Terms]. It gives the control plane back by the line "clean",
// which means: the cluster is as it was. With any other line, or none, as when the process
// is killed, no other package gets that control plane: the lender stops it. Such a line
// says why.
package loan
