// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package documenttest holds that what documents show is true: each fenced block of each
// document names the test that runs it or compares it, or says why no test can.
//
// A comment in the document, which no reader sees, stands on the line before the block:
//
//	<!-- test: cmd/setpoint TestDocuments/watch -->
//	<!-- not run: needs a registry of images -->
//
// The first one names the folder of a package and a test; several are separated by
// semicolons. A comment anywhere in a document is for all its blocks of a language that have
// none of their own; a block without a language has the language "text":
//
//	<!-- test of go: examples/website TestTheCodeOfTheTutorialIsThatOfTheProgram -->
//
// [Check] finds blocks without a comment, and comments that name a test which is not there or
// does not read documents.
//
// A test gets the blocks that name it from [Blocks]. A script gets them from package scripttest,
// whose command "block" runs one and compares what it prints; a script that leaves out one of its
// blocks fails.
//
// Outputs have times, addresses and drawn names in them. [Same] compares two texts without
// these.
package documenttest
