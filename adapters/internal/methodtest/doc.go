// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package methodtest compares two implementations of an interface, and holds a document to what
// the comparison shows.
//
// A document has a table for each interface, below a heading with the name of the interface. A
// row has the names of methods, and what they do here. A row that begins with the words "As in" claims
// that a method does what the peer's does. [Check] fails if a table lacks a method or has one too
// many, and if no comparison shows what a row claims.
//
// A [Comparison] does the same with both sides, and writes down what it sees. Both transcripts must be
// equal, or, where the document tells of a difference, be those that the comparison names.
package methodtest
