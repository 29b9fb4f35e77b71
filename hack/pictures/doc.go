// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Pictures draws what "setpoint watch" shows on a terminal, for the documents:
//
//	make pictures
//
// which is
//
//	setpoint up -- go run ./hack/pictures -out docs/pictures
//
// It runs the real command on a pseudo-terminal, in the cluster that KUBECONFIG names, has
// the real kubectl do a small story there, and draws what it read as SVG: with text that
// can be selected, without fonts, styles or scripts from elsewhere.
//
// The story has a step every two seconds, and the times that are shown are made even, so
// that a picture is drawn anew only where something else is new in it.
//
// [screen] makes cells of what a terminal is sent, [draw] makes SVG of cells; both are
// pure. It needs Linux, for its pseudo-terminals.
package main
