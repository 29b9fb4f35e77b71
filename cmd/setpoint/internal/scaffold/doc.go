// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scaffold is "setpoint new": a module with a controller for a kind of its own.
//
// The module is written from the folder template, by text/template. It builds and passes its
// tests as it is. The names in it come from the command line ([Command]): a module path, an API
// group and a kind.
package scaffold
