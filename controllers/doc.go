// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers defines how a built-in controller describes itself.
//
// Each lies in a folder below this one, and exports a Descriptor: its names, the rights that
// it needs, its options with their defaults, the flags and feature gates that change them,
// and how it is made:
//
//	func Descriptor() *controllers.Descriptor {
//	    return controllers.Define(controllers.Definition[Options]{
//	        Name: Name, Alias: "ttl-after-finished",
//	        Summary:  "deletes Jobs some time after they have finished",
//	        Rights:   Rights(),
//	        Defaults: Defaults(),
//	        Flags: func(o *Options) []controllers.Flag {
//	            return []controllers.Flag{
//	                controllers.Int("concurrent-ttl-after-finished-syncs", &o.Workers, "how many Jobs …").StopsAtZero(),
//	            }
//	        },
//	    }, New)
//	}
//
// The package registry lists them. Whatever concerns all controllers loops over that list:
// the flags of "setpoint manager" and their checks, the choice by --controllers, the roles
// that "setpoint manager rbac" prints, and the tests of the documented tables. A controller
// is therefore added by its folder and a line in that list.
//
// Nothing here reads a command line. A [Flag] has the name of a flag and the place of its
// value; the command makes a flag of it.
package controllers
