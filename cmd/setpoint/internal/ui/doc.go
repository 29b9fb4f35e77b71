// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui is the command "setpoint ui".
//
//	command.go   flags in, a server on the loopback interface
//	browser.go   how a browser is opened
//
// Package managers finds the managers of the cluster and asks them. Package page makes the pages, and serves them to one browser.
package ui
